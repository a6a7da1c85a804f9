//! Functions that analysis needs and SQLite lacks.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::{Connection, Result};

const PURE: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_INNOCUOUS);

type Unary = fn(f64) -> f64;

/// The most values of which a median is computed.
const VALUES: usize = 4 << 20;

pub(super) fn add(connection: &Connection) -> Result<()> {
    let unary: [(&str, Unary); 9] = [
        ("sqrt", f64::sqrt),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("log", f64::log10),
        ("log10", f64::log10),
        ("log2", f64::log2),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
        ("ceiling", f64::ceil),
    ];
    for (name, function) in unary {
        connection.create_scalar_function(name, 1, PURE, move |context| {
            Ok(number(context, 0).map(function).filter(|result| result.is_finite()))
        })?;
    }
    for name in ["pow", "power"] {
        connection.create_scalar_function(name, 2, PURE, |context| {
            let numbers = number(context, 0).zip(number(context, 1));
            Ok(numbers.map(|(base, power)| base.powf(power)).filter(|result| result.is_finite()))
        })?;
    }
    connection.create_aggregate_function("stddev", 1, PURE, Moments(f64::sqrt))?;
    connection.create_aggregate_function("variance", 1, PURE, Moments(|variance| variance))?;
    connection.create_aggregate_function("median", 1, PURE, Median)
}

/// A number, if the argument is one or reads like one.
fn number(context: &Context<'_>, index: usize) -> Option<f64> {
    use rusqlite::types::ValueRef;

    #[expect(clippy::cast_precision_loss, reason = "these functions compute with doubles")]
    match context.get_raw(index) {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        ValueRef::Text(text) => {
            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok())
        }
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// Variance and standard deviation of a sample, by Welford's method.
struct Moments(Unary);

#[derive(Default)]
struct Sums {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Aggregate<Sums, Option<f64>> for Moments {
    fn init(&self, _: &mut Context<'_>) -> Result<Sums> {
        Ok(Sums::default())
    }

    fn step(&self, context: &mut Context<'_>, sums: &mut Sums) -> Result<()> {
        if let Some(number) = number(context, 0) {
            sums.count += 1.0;
            let distance = number - sums.mean;
            sums.mean += distance / sums.count;
            sums.squares += distance * (number - sums.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sums: Option<Sums>) -> Result<Option<f64>> {
        let sums = sums.filter(|sums| sums.count > 1.0);
        Ok(sums.map(|sums| (self.0)(sums.squares / (sums.count - 1.0))))
    }
}

struct Median;

impl Aggregate<Vec<f64>, Option<f64>> for Median {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> Result<()> {
        if values.len() == VALUES {
            let why = format!("median() of more than {VALUES} values");
            return Err(rusqlite::Error::UserFunctionError(why.into()));
        }
        values.extend(number(context, 0));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> Result<Option<f64>> {
        let mut values = values.unwrap_or_default();
        if values.is_empty() {
            return Ok(None);
        }
        let middle = values.len() / 2;
        let is_even = values.len().is_multiple_of(2);
        let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
        let upper = *upper;
        if !is_even {
            return Ok(Some(upper));
        }
        let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
        Ok(Some(f64::midpoint(lower, upper)))
    }
}

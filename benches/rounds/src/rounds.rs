//! Several contenders timed turn by turn, so that whatever disturbs the machine disturbs them all.

use crate::Contender;

/// The times of several contenders over several rounds.
#[derive(Debug, Clone)]
pub struct Rounds {
    names: Vec<&'static str>,
    /// Nanoseconds per piece of work: one row per contender, one entry per round.
    nanoseconds: Vec<Vec<f64>>,
}

/// Times every contender once per round, `times` pieces of work each, for `rounds` rounds after
/// one that is thrown away.
pub fn interleaved(contenders: &mut [Contender], rounds: usize, times: u64) -> Rounds {
    let mut nanoseconds = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..=rounds {
        for (contender, row) in contenders.iter_mut().zip(&mut nanoseconds) {
            let elapsed = contender.run(times);
            if round > 0 {
                #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
                row.push(elapsed.as_nanos() as f64 / times as f64);
            }
        }
    }
    Rounds { names: contenders.iter().map(Contender::name).collect(), nanoseconds }
}

impl Rounds {
    /// The contenders, in their order.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// The median time of a contender, in nanoseconds per piece of work.
    pub fn median(&self, name: &str) -> f64 {
        median(self.row(name).to_vec())
    }

    /// How many times the base's time a contender takes: the median over the rounds of the ratio
    /// inside each round.
    pub fn ratio(&self, name: &str, base: &str) -> f64 {
        let ratios = self.row(name).iter().zip(self.row(base)).map(|(time, base)| time / base);
        median(ratios.collect())
    }

    fn row(&self, name: &str) -> &[f64] {
        let position = self.names.iter().position(|known| *known == name);
        &self.nanoseconds[position.expect("a contender of these rounds")]
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        f64::midpoint(numbers[middle - 1], numbers[middle])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn medians_and_ratios_come_from_the_rounds_after_the_first() {
        let mut calls = 0;
        let steady = Contender::new("steady", |times| Duration::from_nanos(100 * times));
        let uneven = Contender::new("uneven", move |times| {
            calls += 1;
            let each = [9_000, 200, 300, 1_000][calls - 1];
            Duration::from_nanos(each * times)
        });
        let rounds = interleaved(&mut [steady, uneven], 3, 10);
        assert_eq!(rounds.names(), ["steady", "uneven"]);
        assert!((rounds.median("uneven") - 300.0).abs() < 1e-9);
        assert!((rounds.ratio("uneven", "steady") - 3.0).abs() < 1e-9);
    }
}

//! Statistics of requests to models: their durations and tokens, for `/metrics` and OpenTelemetry.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The upper bounds of the duration's buckets in seconds, as OpenTelemetry's conventions for generative AI advise.
pub const MODEL_SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The upper bounds of the buckets of tokens, as the same conventions advise.
pub const MODEL_TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The most combinations of provider, model and error that are counted apart.
const MAX_SERIES: usize = 1_000;

/// The model of requests beyond that number.
const OTHER_MODELS: &str = "(other)";

/// A request to a model that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRequestRecord<'a> {
    /// The provider whose format the request has: `openai` or `anthropic`.
    pub provider: &'a str,
    /// The model that was asked.
    pub model: &'a str,
    /// How long it took.
    pub duration: Duration,
    /// The stable word for what went wrong, if it failed.
    pub error: Option<&'a str>,
    /// The tokens of the request and of the answer, if the provider has counted them.
    pub tokens: Option<(u64, u64)>,
}

/// Counts requests to models. Cloning it is cheap; clones share the counters.
#[derive(Clone, Default)]
pub struct ModelStatistics(Arc<Counters>);

#[derive(Default)]
struct Counters {
    series: Mutex<BTreeMap<SeriesName, ModelSeries>>,
    listener: OnceLock<Box<Listener>>,
}

type Listener = dyn Fn(&ModelRequestRecord<'_>) + Send + Sync;

/// The provider, the model and the error.
type SeriesName = (String, String, Option<String>);

/// The requests to one model that have ended in one way.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSeries {
    /// The provider whose format the requests have.
    pub provider: String,
    /// The model.
    pub model: String,
    /// What went wrong, if they failed.
    pub error: Option<String>,
    /// Their durations in seconds.
    pub seconds: BucketCounts,
    /// Their tokens.
    pub input_tokens: BucketCounts,
    /// The tokens of their answers.
    pub output_tokens: BucketCounts,
}

/// How many values are at most as large as each bound.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BucketCounts {
    /// The upper bounds.
    pub bounds: &'static [f64],
    /// The number of values up to each bound. Values above the last one are in `count` alone.
    pub up_to: Vec<u64>,
    /// The number of all values.
    pub count: u64,
    /// The sum of all values.
    pub sum: f64,
}

impl BucketCounts {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, up_to: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    fn add(&mut self, value: f64) {
        for (bound, count) in self.bounds.iter().zip(&mut self.up_to) {
            *count += u64::from(value <= *bound);
        }
        self.count += 1;
        self.sum += value;
    }
}

impl ModelStatistics {
    /// Counts a request.
    pub fn record(&self, record: &ModelRequestRecord<'_>) {
        if let Some(listener) = self.0.listener.get() {
            listener(record);
        }
        let error = record.error.map(str::to_owned);
        let mut name = (record.provider.to_owned(), record.model.to_owned(), error);
        let mut all = self.0.series.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(&name) {
            OTHER_MODELS.clone_into(&mut name.1);
        }
        let series = all.entry(name.clone()).or_insert_with(|| ModelSeries {
            provider: name.0,
            model: name.1,
            error: name.2,
            seconds: BucketCounts::new(&MODEL_SECONDS),
            input_tokens: BucketCounts::new(&MODEL_TOKENS),
            output_tokens: BucketCounts::new(&MODEL_TOKENS),
        });
        series.seconds.add(record.duration.as_secs_f64());
        if let Some((input, output)) = record.tokens {
            series.input_tokens.add(number(input));
            series.output_tokens.add(number(output));
        }
    }

    /// All requests so far, sorted by provider, model and error.
    pub fn snapshot(&self) -> Vec<ModelSeries> {
        let all = self.0.series.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// Sets who is told of every request from now on. Only the first one is.
    pub fn on_request(&self, listener: impl Fn(&ModelRequestRecord<'_>) + Send + Sync + 'static) {
        let _ = self.0.listener.set(Box::new(listener));
    }
}

/// Tokens are few enough to be exact.
#[expect(clippy::cast_precision_loss, reason = "2^53 tokens are never counted")]
fn number(tokens: u64) -> f64 {
    tokens as f64
}

impl fmt::Debug for ModelStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelStatistics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record<'a>(model: &'a str, millis: u64, error: Option<&'a str>) -> ModelRequestRecord<'a> {
        let duration = Duration::from_millis(millis);
        let tokens = error.is_none().then_some((100, 5));
        ModelRequestRecord { provider: "openai", model, duration, error, tokens }
    }

    #[test]
    fn requests_are_counted_by_model_and_error_in_buckets() {
        let statistics = ModelStatistics::default();
        for (millis, error) in [(15, None), (30, None), (100_000, None), (5, Some("timeout"))] {
            statistics.record(&record("a", millis, error));
        }
        let all = statistics.snapshot();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].error.as_deref(), all[1].error.as_deref()), (None, Some("timeout")));
        assert_eq!(all[0].seconds.up_to[..4], [0, 1, 2, 2]);
        assert_eq!((all[0].seconds.up_to[13], all[0].seconds.count), (2, 3));
        assert_eq!(all[0].input_tokens.sum.to_string(), "300");
        assert_eq!(all[0].output_tokens.up_to[2], 3);
        assert_eq!((all[1].seconds.count, all[1].input_tokens.count), (1, 0));
    }

    #[test]
    fn models_that_clients_name_take_a_bounded_amount_of_memory() {
        let statistics = ModelStatistics::default();
        for number in 0..MAX_SERIES + 50 {
            statistics.record(&record(&number.to_string(), 1, None));
        }
        let all = statistics.snapshot();
        assert_eq!(all.len(), MAX_SERIES + 1);
        let other = all.iter().find(|one| one.model == OTHER_MODELS).unwrap();
        assert_eq!(other.seconds.count, 50);
    }
}

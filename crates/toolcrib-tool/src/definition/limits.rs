//! Limits and policies that a definition states and the executor enforces.

use std::num::NonZeroU32;
use std::time::Duration;

/// A maximum number of calls in a period.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_tool::RateLimit;
///
/// let limit: RateLimit = "30/min".parse()?;
/// assert_eq!((limit.calls().get(), limit.per()), (30, Duration::from_secs(60)));
/// assert!("30".parse::<RateLimit>().unwrap_err().to_string().contains("30/min"));
/// # Ok::<(), toolcrib_tool::InvalidRateLimit>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateLimit {
    calls: NonZeroU32,
    per: Duration,
}

impl RateLimit {
    /// At most `calls` in every `per`; `None` if `per` is zero.
    pub fn new(calls: NonZeroU32, per: Duration) -> Option<Self> {
        (!per.is_zero()).then_some(Self { calls, per })
    }

    /// At most `calls` in every second.
    pub const fn per_second(calls: NonZeroU32) -> Self {
        Self { calls, per: Duration::from_secs(1) }
    }

    /// At most `calls` in every minute.
    pub const fn per_minute(calls: NonZeroU32) -> Self {
        Self { calls, per: Duration::from_secs(60) }
    }

    /// At most `calls` in every hour.
    pub const fn per_hour(calls: NonZeroU32) -> Self {
        Self { calls, per: Duration::from_secs(3600) }
    }

    /// The number of calls.
    pub fn calls(self) -> NonZeroU32 {
        self.calls
    }

    /// The period.
    pub fn per(self) -> Duration {
        self.per
    }
}

/// A text that is not a valid rate limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRateLimit(String);

impl std::fmt::Display for InvalidRateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is not a rate limit: write calls per s, min or h, like 30/min", self.0)
    }
}

impl std::error::Error for InvalidRateLimit {}

impl std::fmt::Display for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.per.as_secs() {
            1 => write!(f, "{}/s", self.calls),
            60 => write!(f, "{}/min", self.calls),
            3600 => write!(f, "{}/h", self.calls),
            _ => write!(f, "{}/{:?}", self.calls, self.per),
        }
    }
}

impl std::str::FromStr for RateLimit {
    type Err = InvalidRateLimit;

    fn from_str(text: &str) -> Result<Self, InvalidRateLimit> {
        let refuse = || InvalidRateLimit(text.to_owned());
        let (calls, unit) = text.split_once('/').ok_or_else(refuse)?;
        let calls = calls.trim().parse().map_err(|_| refuse())?;
        match unit.trim() {
            "s" => Ok(Self::per_second(calls)),
            "min" => Ok(Self::per_minute(calls)),
            "h" => Ok(Self::per_hour(calls)),
            _ => Err(refuse()),
        }
    }
}

/// How repeated calls are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dedupe {
    /// A call equal to an earlier one in the session, or in the batch, gets the earlier answer.
    Session,
    /// Equal calls in a batch run once.
    Batch,
    /// Every call runs.
    #[default]
    None,
}

impl Dedupe {
    /// The name in manifests and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Batch => "batch",
            Self::None => "none",
        }
    }
}

/// When a call waits for a person's approval, unless a rule of the host's policy decides otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approval {
    /// Calls run without approval.
    #[default]
    Never,
    /// Calls to a tool that is destructive and not read-only wait.
    Destructive,
    /// Every call waits.
    Always,
}

impl Approval {
    /// The name in manifests and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Destructive => "destructive",
            Self::Always => "always",
        }
    }
}

/// Whether a call may be answered with a task, which the client polls until it is done. Clients declare whether they
/// support tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskMode {
    /// The client waits for the answer, however long it takes.
    Never,
    /// A long call becomes a task if the client supports tasks.
    #[default]
    Auto,
    /// Every call becomes a task; clients without support for tasks cannot call the tool.
    Required,
}

impl TaskMode {
    /// The name in manifests and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Auto => "auto",
            Self::Required => "required",
        }
    }
}

/// How often a failed call is retried.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_tool::RetryPolicy;
///
/// let retry = RetryPolicy::new(2).with_backoff(Duration::from_millis(50));
/// assert_eq!((retry.max(), retry.backoff()), (2, Duration::from_millis(50)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    max: u32,
    backoff: Duration,
}

impl RetryPolicy {
    /// At most `max` retries, the first after 100 ms, with the delay doubled each time.
    pub const fn new(max: u32) -> Self {
        Self { max, backoff: Duration::from_millis(100) }
    }

    /// Sets the delay before the first retry.
    #[must_use]
    pub const fn with_backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    /// The maximum number of retries.
    pub const fn max(self) -> u32 {
        self.max
    }

    /// The delay before the first retry.
    pub const fn backoff(self) -> Duration {
        self.backoff
    }
}

/// Whether and how long a successful answer is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CachePolicy {
    ttl: Option<Duration>,
    shared: bool,
}

impl CachePolicy {
    /// Caches answers for the executor's default time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long answers are cached.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Lets answers serve every later call with the same arguments, injected values and identity, even if the tool read
    /// its session, services, files, other context values or other tools. Without this, such an answer is not cached,
    /// because another call might get a different one.
    #[must_use]
    pub fn with_shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// How long answers are cached; `None` for the executor's default.
    pub fn ttl(self) -> Option<Duration> {
        self.ttl
    }

    /// Whether answers are cached whatever the tool reads from its context.
    pub fn is_shared(self) -> bool {
        self.shared
    }
}

/// The resources that a tool reads and writes, by names on which the tools of a host agree, for example `tickets`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
}

impl Resources {
    pub(crate) const NONE: Self = Self { reads: Vec::new(), writes: Vec::new() };

    /// No resources.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource whose state the answer depends on.
    #[must_use]
    pub fn reads(mut self, resource: impl Into<String>) -> Self {
        self.reads.push(resource.into());
        self
    }

    /// Adds a resource that a call may change: cached answers that depend on it are dropped.
    #[must_use]
    pub fn writes(mut self, resource: impl Into<String>) -> Self {
        self.writes.push(resource.into());
        self
    }

    /// The resources on which the answer depends.
    pub fn read(&self) -> &[String] {
        &self.reads
    }

    /// The resources that a call may change.
    pub fn written(&self) -> &[String] {
        &self.writes
    }
}

//! Calls: their order, their time limits, how they end, and what they see of the host.

mod batches;
mod cancelling;
mod closures;
mod concurrency;
mod context;
mod deadlines;
mod doubles;
mod dry_runs;
mod failures;
mod identity;
mod lifecycle;
mod nested_calls;
mod running;
mod time_limits;

//! Calls that running tools make: what they share with the call they are made from, and how they
//! wait.
//!
//! A nested call that has to wait for somebody suspends every call that led to it. In the process
//! their futures stay alive: [`RootCall`] answers the caller that the call waits and goes on with it
//! in a task of its own. Meanwhile the calls give their permits back, their limits stand still, and
//! the decision reaches the nested call through [`LiveCalls`]. After a restart the bodies are gone;
//! [`Repetition`] then makes the calls again, where that does no harm.

mod joining;
mod live_calls;
mod pause;
mod repetition;
mod resume;
mod resume_location;
mod root;
mod running_call;
mod waiting;

pub(crate) use crate::call::nested::live_calls::LiveCalls;
pub(crate) use crate::call::nested::resume_location::ResumeLocation;
pub(crate) use crate::call::nested::running_call::RunningCall;
pub(crate) use pause::Paused;
pub(crate) use repetition::{Next, Repetition};
pub(crate) use resume::unfinished;
pub(crate) use root::{RootCall, RootStart, make};
pub(crate) use waiting::NestedWait;

//! Nested calls: what they share with their parent, and how they wait.
//!
//! A nested call that has to wait for somebody suspends all its ancestors. Their futures stay alive
//! in this process: [`RootCall`] tells the caller that the call waits and continues it in a
//! separate task. Meanwhile the calls release their permits, their time limits are paused, and the
//! decision reaches the nested call through [`LiveCalls`]. After a restart the futures are gone;
//! [`Repetition`] then makes the calls again if that is harmless.

mod joining;
mod live_calls;
mod pause;
mod repetition;
mod resume;
mod resume_location;
mod resume_permit;
mod root;
mod running_call;
mod waiting;

pub(crate) use crate::call::nested::live_calls::LiveCalls;
pub(crate) use crate::call::nested::resume_location::ResumeLocation;
pub(crate) use crate::call::nested::resume_permit::ResumePermit;
pub(crate) use crate::call::nested::running_call::RunningCall;
pub(crate) use pause::Paused;
pub(crate) use repetition::{Next, Repetition};
pub(crate) use resume::unfinished;
pub(crate) use root::{RootCall, RootStart, make};
pub(crate) use waiting::NestedWait;

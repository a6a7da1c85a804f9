//! Calls that wait for approval, an answer or a client.

mod approval;
mod awaiting;
mod bound_consent;
mod shutting_down;
mod suspending;

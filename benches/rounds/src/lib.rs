//! How work is measured, whatever it is: contenders timed turn by turn, as ratios inside one run.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a bench that cannot set up its work has nothing to measure"
)]

mod contender;
mod instructions;
mod rounds;
pub mod target;

pub use contender::Contender;
pub use instructions::{asked_to_run, instructions, instructions_of_run};
pub use rounds::{Rounds, interleaved};
pub use target::Target;

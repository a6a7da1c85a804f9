//! Python: code that a model wrote, in a process that can do nothing else.
#![doc = include_str!("../docs/execute_python.md")]

mod execute_python;
mod interpreter;
mod module;
mod outcome;
mod settings;
mod strictness;

pub use module::{InvalidModule, ModuleName};
pub use settings::PythonSettings;
pub use strictness::{Strictness, UnknownStrictness};

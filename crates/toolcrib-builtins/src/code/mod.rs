//! Python: runs code of a model in a confined process.
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

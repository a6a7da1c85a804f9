//! Agents on the command line, with a scripted model behind HTTP.

mod harness;
mod running;
mod settings;

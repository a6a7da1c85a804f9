//! Loading: what a manifest declares, from which folders and layers, and at which cost.

mod complete;
mod config;
mod constraints;
mod directories;
mod files;
mod files_that_run;
mod http;
mod layers;
mod loaded_code;
mod memory;
mod policies;
mod program_advice;
mod programs;
mod robustness;
pub(crate) mod schemas;
mod shell_texts;
mod toolchains;
mod upstreams;

//! What loading promises, seen from outside.

mod config;
mod diagnostics;
mod directories;
mod fixes;
mod gallery;
mod layers;
mod loading;
mod policies;
mod robustness;

//! Commands about the installation: `config`, `doctor`, `completions`, `man`.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod man;
pub(crate) mod state;

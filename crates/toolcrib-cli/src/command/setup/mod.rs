//! Commands about the installation: `init`, `config`, `doctor`, `completions`, `man`, `help manifest`.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod reference;
pub(crate) mod state;

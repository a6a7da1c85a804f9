//! Background tasks of a running server, and its shutdown.

pub(crate) mod background;
pub(crate) mod stop;

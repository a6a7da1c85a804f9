//! Background tasks of a running server, and its shutdown.

pub(crate) mod background;
pub(crate) mod service_manager;
pub(crate) mod stop;

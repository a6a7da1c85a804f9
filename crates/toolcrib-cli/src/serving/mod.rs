//! What goes on beside a server that runs, and how it comes to an end.

pub(crate) mod background;
pub(crate) mod stop;

//! Commands about manifests: `check`, `new`, `enable`, `disable`, `test`, `lock`, `accept`, `trust`, `schema`.

pub(crate) mod accept;
pub(crate) mod check;
pub(crate) mod enable;
pub(crate) mod lock;
pub(crate) mod new;
pub(crate) mod schema;
pub(crate) mod test;
pub(crate) mod trust;

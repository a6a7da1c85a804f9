//! Parts that all stores share: wall-clock time and bounds per identity.

pub mod bounds;
pub mod clock;

//! What every store shares: the time of day and bounds per identity.

pub mod bounds;
pub mod clock;

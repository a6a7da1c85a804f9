//! Servers under load, and catalogues of many tools.

mod bounds;
mod catalogue;
mod changes;
mod fairness;
mod storm;

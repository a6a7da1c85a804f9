//! A nested call that has to wait suspends the tool that made it: what happens to the tool's time,
//! permit and slot, and how it continues or ends.

mod decisions;
mod ends;
mod host;
mod shared;
mod time_and_places;

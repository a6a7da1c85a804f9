//! A call that a running tool makes and that has to wait suspends that tool: what happens to its
//! time, its permit and its place, and how it goes on or ends.

mod decisions;
mod ends;
mod host;
mod shared;
mod time_and_places;

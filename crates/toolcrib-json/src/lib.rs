//! JSON text that is parsed once and read in place.
//!
//! A [`Tape`] is the text and one flat list of nodes that point into it. Building one costs one
//! pass and one allocation; a validator walks it, serde reads a type from it, and neither looks at
//! the text's syntax again.
//!
//! ```
//! use serde::Deserialize;
//!
//! #[derive(Debug, PartialEq, Deserialize)]
//! struct Search<'a> {
//!     path: &'a str,
//!     limit: Option<u32>,
//! }
//!
//! let tape = toolcrib_json::parse_owned(r#"{"path": "src", "limit": 5}"#.to_owned()).unwrap();
//! assert_eq!(tape.root().get("path").unwrap().source(), r#""src""#);
//!
//! let search = Search::deserialize(tape.root())?;
//! assert_eq!(search, Search { path: "src", limit: Some(5) });
//! # Ok::<(), toolcrib_json::ReadError>(())
//! ```
//!
//! # What is refused
//!
//! [`parse`] is stricter than most parsers: a text that two readers could understand differently
//! is refused. Beyond the grammar these are duplicate keys (however they are escaped), more than
//! [`MAX_DEPTH`] levels, lone surrogates, numbers outside the range of a double, and texts longer
//! than [`MAX_TEXT`].
//!
//! # What serde reads
//!
//! [`Cursor`] is a [`serde::Deserializer`] that gives a type what `serde_json::from_str` gives it:
//! whole numbers as `u64` or `i64` (`-0` and those beyond as `f64`, 128-bit types as they are
//! written), other numbers as the nearest `f64`, strings borrowed where they hold no escape,
//! integers and booleans from the text of keys, and bytes from a string or an array.
//! `serde_json::Value` works as a target; `serde_json::value::RawValue` does not, since it asks for
//! text under a private name: use [`Cursor::source`]. A [`ReadError`] names its place as a JSON
//! pointer.
//!
//! # Numbers that no type holds
//!
//! A number beyond 64 bits or double precision stays as it is written in the text. [`exact`] carries
//! such numbers through types that would round them.
//!
//! # Canonical text
//!
//! [`write_canonical`] and [`canonical_json`] write one text for a value, from which cache keys and stored
//! digests are made.

#![forbid(unsafe_code)]

mod canonical;
mod error;
pub mod exact;
mod parse;
mod read;
mod tape;

pub use canonical::{Numbers, canonical_json, write_canonical};
pub use error::{ParseError, ReadError};
pub use parse::{MAX_DEPTH, MAX_TEXT, parse, parse_owned};
pub use tape::{Cursor, Items, Kind, Members, Number, Tape};

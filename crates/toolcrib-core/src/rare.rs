//! What few calls come to, kept out of the way of the others.

/// Says that what leads here is rare: its code is put behind that of all other ways.
///
/// A call runs through as much code as a processor's first cache holds, most of it once. What it jumps
/// over takes room there all the same.
#[cold]
#[inline(never)]
pub(crate) fn rare() {}

//! What few calls come to, kept out of the way of the others.

/// Says that what leads here is rare: its code is put behind that of all other ways.
///
/// A call runs through more code than a processor's first cache holds, most of it once, and what it jumps
/// over takes room there all the same. So a branch is marked that few calls take, or whose work takes so
/// much longer that the way to its code is nothing beside it: waiting, asking somebody, writing the
/// arguments anew.
#[cold]
#[inline(never)]
pub(crate) fn rare() {}

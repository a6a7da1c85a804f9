//! Asking for memory ahead of its use.
//!
//! Where there are thousands of tools, what belongs to one of them is in no cache of the processor, and
//! each line of it that a call reads is a wait as long as hundreds of instructions. A line that was asked
//! for while there is other work to do is there when it is read.

use prefetch_index::prefetch_index;

/// Asks for the line on which the value begins, and goes on without it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "one instruction")]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_index(std::slice::from_ref(value), 0);
}

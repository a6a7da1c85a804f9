//! Limits how much a search reads, by counting bytes as they are read instead of trusting file sizes.

use std::io::{self, Read};

/// Bytes that may still be read in all files of a search together.
#[derive(Debug)]
pub(super) struct ReadBudget {
    left: u64,
    exhausted: bool,
}

impl ReadBudget {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { left: bytes, exhausted: false }
    }

    /// Whether there was more to read than allowed.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// A reader that ends early when the allowance is used up, or when `ended` returns true.
    pub(super) fn reader<R: Read, E: Fn() -> bool>(
        &mut self,
        source: R,
        ended: E,
    ) -> BudgetedReader<'_, R, E> {
        BudgetedReader { read_budget: self, source, ended }
    }
}

/// A reader within an [`ReadBudget`].
pub(super) struct BudgetedReader<'a, R, E> {
    read_budget: &'a mut ReadBudget,
    source: R,
    ended: E,
}

impl<R: Read, E: Fn() -> bool> Read for BudgetedReader<'_, R, E> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.ended)() {
            return Ok(0);
        }
        let read = self.source.read(buffer)?;
        let counted = u64::try_from(read).unwrap_or(u64::MAX);
        // Bytes beyond the allowance are not returned: a line that is cut would look like another line.
        if counted > self.read_budget.left {
            self.read_budget.left = 0;
            self.read_budget.exhausted = true;
            return Ok(0);
        }
        self.read_budget.left -= counted;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(read_budget: &mut ReadBudget, source: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        read_budget.reader(source, || false).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn bytes_are_counted_over_all_files_up_to_the_allowance() {
        let mut read_budget = ReadBudget::new(10);
        assert_eq!(read(&mut read_budget, b"abc"), b"abc");
        assert_eq!(read(&mut read_budget, b"0123456"), b"0123456");
        // Everything was read, and nothing was left.
        assert!(!read_budget.exhausted());
        assert_eq!(read(&mut read_budget, b""), b"");
        assert!(!read_budget.exhausted());
        assert_eq!(read(&mut read_budget, b"x"), b"");
        assert!(read_budget.exhausted());
    }

    #[test]
    fn a_reader_can_be_stopped_within_a_file() {
        let mut read_budget = ReadBudget::new(u64::MAX);
        let mut buffer = [0; 4];
        let mut source = io::repeat(b'x');
        assert_eq!(read_budget.reader(&mut source, || false).read(&mut buffer).unwrap(), 4);
        assert_eq!(read_budget.reader(&mut source, || true).read(&mut buffer).unwrap(), 0);
        assert!(!read_budget.exhausted());
    }
}

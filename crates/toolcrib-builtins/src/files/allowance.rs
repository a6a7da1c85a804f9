//! How much a search reads: counted as it is read, and not by what files say of their size.

use std::io::{self, Read};

/// Bytes that may still be read, over all files of a search.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u64,
    exhausted: bool,
}

impl Allowance {
    pub(super) const fn new(bytes: u64) -> Self {
        Self { left: bytes, exhausted: false }
    }

    /// Whether there was more to read than may be.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// A reader that ends early where nothing more may be read, or when `ended` says so.
    pub(super) fn reader<R: Read, E: Fn() -> bool>(
        &mut self,
        source: R,
        ended: E,
    ) -> AllowedReader<'_, R, E> {
        AllowedReader { allowance: self, source, ended }
    }
}

/// A reader within an [`Allowance`].
pub(super) struct AllowedReader<'a, R, E> {
    allowance: &'a mut Allowance,
    source: R,
    ended: E,
}

impl<R: Read, E: Fn() -> bool> Read for AllowedReader<'_, R, E> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.ended)() {
            return Ok(0);
        }
        let read = self.source.read(buffer)?;
        let counted = u64::try_from(read).unwrap_or(u64::MAX);
        // What goes beyond is not handed on: a last line that is cut would be another line.
        if counted > self.allowance.left {
            self.allowance.left = 0;
            self.allowance.exhausted = true;
            return Ok(0);
        }
        self.allowance.left -= counted;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(allowance: &mut Allowance, source: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        allowance.reader(source, || false).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_read_is_counted_over_all_files_and_no_more_than_allowed() {
        let mut allowance = Allowance::new(10);
        assert_eq!(read(&mut allowance, b"abc"), b"abc");
        assert_eq!(read(&mut allowance, b"0123456"), b"0123456");
        // All of it was read, and there was no more.
        assert!(!allowance.exhausted());
        assert_eq!(read(&mut allowance, b""), b"");
        assert!(!allowance.exhausted());
        assert_eq!(read(&mut allowance, b"x"), b"");
        assert!(allowance.exhausted());
    }

    #[test]
    fn a_reader_that_is_told_to_ends_within_a_file() {
        let mut allowance = Allowance::new(u64::MAX);
        let mut buffer = [0; 4];
        let mut source = io::repeat(b'x');
        assert_eq!(allowance.reader(&mut source, || false).read(&mut buffer).unwrap(), 4);
        assert_eq!(allowance.reader(&mut source, || true).read(&mut buffer).unwrap(), 0);
        assert!(!allowance.exhausted());
    }
}

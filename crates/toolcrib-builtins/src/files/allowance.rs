//! Limits how much a search reads, by counting bytes as they are read instead of trusting file sizes.

use std::io::{self, Read};

/// Bytes that may still be read in all files of a search together.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u64,
    exhausted: bool,
}

impl Allowance {
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
        // Bytes beyond the allowance are not returned: a line that is cut would look like another line.
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
    fn bytes_are_counted_over_all_files_up_to_the_allowance() {
        let mut allowance = Allowance::new(10);
        assert_eq!(read(&mut allowance, b"abc"), b"abc");
        assert_eq!(read(&mut allowance, b"0123456"), b"0123456");
        // Everything was read, and nothing was left.
        assert!(!allowance.exhausted());
        assert_eq!(read(&mut allowance, b""), b"");
        assert!(!allowance.exhausted());
        assert_eq!(read(&mut allowance, b"x"), b"");
        assert!(allowance.exhausted());
    }

    #[test]
    fn a_reader_can_be_stopped_within_a_file() {
        let mut allowance = Allowance::new(u64::MAX);
        let mut buffer = [0; 4];
        let mut source = io::repeat(b'x');
        assert_eq!(allowance.reader(&mut source, || false).read(&mut buffer).unwrap(), 4);
        assert_eq!(allowance.reader(&mut source, || true).read(&mut buffer).unwrap(), 0);
        assert!(!allowance.exhausted());
    }
}

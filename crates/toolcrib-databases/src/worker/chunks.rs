//! One file of the request, read from the chunks in which it arrives.

use std::io::{self, Read};

use crate::protocol::CHUNK;

pub(super) struct ChunkReader<'a, R> {
    input: &'a mut R,
    /// What is left of the current chunk.
    left: usize,
    ended: bool,
}

impl<'a, R: Read> ChunkReader<'a, R> {
    pub(super) fn new(input: &'a mut R) -> Self {
        Self { input, left: 0, ended: false }
    }

    /// Starts the next chunk; `false` at the end of the file.
    fn next_chunk(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        self.left = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if self.left > CHUNK {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a chunk is too long"));
        }
        self.ended = self.left == 0;
        Ok(!self.ended)
    }
}

impl<R: Read> Read for ChunkReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || (self.left == 0 && !self.next_chunk()?) {
            return Ok(0);
        }
        let room = buffer.len().min(self.left);
        let count = self.input.read(&mut buffer[..room])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_one_after_another_from_their_chunks() {
        let mut bytes = Vec::new();
        for chunk in ["ab", "c", "", "", "d", ""] {
            bytes.extend(u32::try_from(chunk.len()).unwrap().to_le_bytes());
            bytes.extend(chunk.as_bytes());
        }
        let mut input = bytes.as_slice();
        let mut read = || {
            let mut text = String::new();
            ChunkReader::new(&mut input).read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(
            (read().unwrap(), read().unwrap(), read().unwrap()),
            ("abc".into(), String::new(), "d".into())
        );
        assert!(read().is_err(), "the input ends before the file");
        let mut endless = [255_u8; 8].as_slice();
        assert!(ChunkReader::new(&mut endless).read(&mut [0; 4]).is_err());
    }
}

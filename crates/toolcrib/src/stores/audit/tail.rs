//! The end of the audit log.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Rotation, open};

/// What is read of one file at most, in bytes.
const READ: u64 = 4 * 1024 * 1024;

/// The last records in the file and in those that were moved aside, the oldest first.
pub(super) fn last(path: &Path, rotation: Rotation, records: usize) -> io::Result<Vec<Value>> {
    let aside: Vec<PathBuf> =
        if rotation.is_never() { Vec::new() } else { rotation.files(path).collect() };
    let mut newest_first = Vec::new();
    for file in std::iter::once(path.to_owned()).chain(aside) {
        if newest_first.len() >= records {
            break;
        }
        match end_of(&file) {
            Ok(text) => {
                let missing = records - newest_first.len();
                let lines = text.lines().rev();
                // A line that somebody else has put there is no record.
                let found = lines.filter_map(|line| serde_json::from_str(line).ok());
                newest_first.extend(found.take(missing));
            }
            // Moved aside this moment, or never written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// The end of a file, in whole lines.
fn end_of(path: &Path) -> io::Result<String> {
    let (mut file, found) = open::for_reading(path)?;
    let from = found.len().saturating_sub(READ);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    if from > 0 {
        let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..begin);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

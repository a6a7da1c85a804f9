//! `--attach FILE`: files that are sent to the model with what it is told.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use toolcrib::tool::Content;

const MIB: u64 = 1024 * 1024;
/// The largest text file: about 260,000 tokens.
const MAX_TEXT: u64 = MIB;
/// The largest picture, sound or document.
const MAX_MEDIA: u64 = 10 * MIB;
/// The most that all files may have together. Providers refuse requests from about 32 MB on.
const MAX_ALL: u64 = 20 * MIB;

/// Reads the files. What a file is, its content says, not its name.
pub(super) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Content>> {
    let mut all = 0;
    let mut parts = Vec::with_capacity(files.len());
    for path in files {
        let data = bytes(path).with_context(|| format!("attaching {}", path.display()))?;
        all += data.len() as u64;
        ensure!(all <= MAX_ALL, "the attached files have more than {} MiB together", MAX_ALL / MIB);
        parts.push(content(path, data).with_context(|| format!("attaching {}", path.display()))?);
    }
    Ok(parts)
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    ensure!(path.metadata()?.is_file(), "it is not a file");
    let mut data = Vec::new();
    File::open(path)?.take(MAX_MEDIA + 1).read_to_end(&mut data)?;
    ensure!(data.len() as u64 <= MAX_MEDIA, "it has more than {} MiB", MAX_MEDIA / MIB);
    ensure!(!data.is_empty(), "it is empty");
    Ok(data)
}

fn content(path: &Path, data: Vec<u8>) -> anyhow::Result<Content> {
    let uri = path.to_string_lossy().into_owned();
    if let Some(mime_type) = picture(&data) {
        return Ok(Content::Image { data, mime_type: mime_type.to_owned() });
    }
    if let Some(mime_type) = sound(&data) {
        return Ok(Content::Audio { data, mime_type: mime_type.to_owned() });
    }
    if data.starts_with(b"%PDF-") {
        return Ok(Content::Blob { uri, data, mime_type: "application/pdf".to_owned() });
    }
    let size = data.len() as u64;
    match String::from_utf8(data) {
        Ok(text) if !text.contains('\0') => {
            ensure!(
                size <= MAX_TEXT,
                "it is a text of more than {} MiB; let the agent read it with a tool instead",
                MAX_TEXT / MIB
            );
            Ok(Content::TextFile { uri, text, mime_type: None })
        }
        _ => {
            bail!("it is no text in UTF-8, picture (PNG, JPEG, GIF, WebP), sound (WAV, MP3) or PDF")
        }
    }
}

fn picture(data: &[u8]) -> Option<&'static str> {
    match data {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn sound(data: &[u8]) -> Option<&'static str> {
    match data {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => Some("audio/mpeg"),
        _ => None,
    }
}

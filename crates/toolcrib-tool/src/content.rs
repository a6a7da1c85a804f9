//! The parts a result is made of.

use std::borrow::Cow;

/// One part of a result, each with its mime type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model and for people.
    Text(String),
    /// A picture: raw bytes (encoded only at the edge that needs it).
    Image {
        /// The encoded picture, for example a PNG file's bytes.
        data: Vec<u8>,
        /// Its mime type, for example `image/png`.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The encoded sound.
        data: Vec<u8>,
        /// Its mime type, for example `audio/wav`.
        mime_type: String,
    },
    /// A pointer to something the client can fetch itself.
    Link {
        /// Where it is.
        uri: String,
        /// What to call it.
        name: String,
        /// Its mime type, if known.
        mime_type: Option<String>,
    },
    /// A file carried whole.
    Blob {
        /// A name for it, as a URI.
        uri: String,
        /// Its bytes.
        data: Vec<u8>,
        /// Its mime type.
        mime_type: String,
    },
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// How this part reads in a transcript: text as it is, anything else as one bracketed line.
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image { data, mime_type } => {
                format!("[image {mime_type}, {} bytes]", data.len()).into()
            }
            Self::Audio { data, mime_type } => {
                format!("[audio {mime_type}, {} bytes]", data.len()).into()
            }
            Self::Link { uri, name, .. } => format!("[link {name}: {uri}]").into(),
            Self::Blob { uri, data, mime_type } => {
                format!("[file {uri} {mime_type}, {} bytes]", data.len()).into()
            }
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

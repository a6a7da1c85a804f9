//! The parts a result is made of.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

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
    Link(Box<Link>),
    /// A text file carried whole.
    TextFile {
        /// A name for it, as a URI.
        uri: String,
        /// What is in it.
        text: String,
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

    /// How this part reads in a transcript: text as it is, a text file below a bracketed line that
    /// names it, anything else as one such line.
    pub fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image { data, mime_type } => {
                format!("[image {mime_type}, {} bytes]", data.len()).into()
            }
            Self::Audio { data, mime_type } => {
                format!("[audio {mime_type}, {} bytes]", data.len()).into()
            }
            Self::Link(link) => link.to_string().into(),
            Self::TextFile { uri, text, mime_type: Some(mime_type) } => {
                format!("[file {uri} {mime_type}]\n{text}").into()
            }
            Self::TextFile { uri, text, mime_type: None } => format!("[file {uri}]\n{text}").into(),
            Self::Blob { uri, data, mime_type } => {
                format!("[file {uri} {mime_type}, {} bytes]", data.len()).into()
            }
        }
    }
}

/// A pointer to something that can be fetched.
///
/// ```
/// use toolcrib_tool::{Content, Link};
///
/// let link = Link::new("https://example.org/a.png", "chart").mime_type("image/png");
/// assert_eq!(Content::from(link).as_text(), "[link chart: https://example.org/a.png]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Where it is.
    pub uri: String,
    /// What to call it.
    pub name: String,
    /// What to call it before people, where that is another name.
    pub title: Option<String>,
    /// What there is, for models and people.
    pub description: Option<String>,
    /// Its mime type, if known.
    pub mime_type: Option<String>,
    /// How large it is, in bytes, if known.
    pub size: Option<u64>,
}

impl Link {
    /// A pointer to what is at `uri`.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        }
    }

    /// Sets the mime type of what is there.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The members by their names, as JSON; those that are absent are left out.
    pub fn to_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("uri".to_owned(), self.uri.as_str().into());
        members.insert("name".to_owned(), self.name.as_str().into());
        let optional = [
            ("title", &self.title),
            ("description", &self.description),
            ("mime_type", &self.mime_type),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                members.insert(name.to_owned(), value.as_str().into());
            }
        }
        if let Some(size) = self.size {
            members.insert("size".to_owned(), size.into());
        }
        members
    }
}

/// One bracketed line.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.title.as_deref().unwrap_or(&self.name);
        write!(f, "[link {name}: {}]", self.uri)
    }
}

impl From<Link> for Content {
    fn from(link: Link) -> Self {
        Self::Link(Box::new(link))
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

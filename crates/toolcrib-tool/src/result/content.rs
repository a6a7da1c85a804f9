//! The parts of a result.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One part of a result, each with its mime type.
///
/// Its JSON is an object whose `type` names the variant; bytes are base64 and absent members are left
/// out.
///
/// ```
/// use toolcrib_tool::Content;
///
/// let part = Content::Image { data: vec![1, 2, 3], mime_type: "image/png".to_owned() };
/// let text = serde_json::to_string(&part)?;
/// assert_eq!(text, r#"{"type":"image","data":"AQID","mime_type":"image/png"}"#);
/// assert_eq!(serde_json::from_str::<Content>(&text)?, part);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text for the model and for people.
    #[serde(with = "text_member")]
    Text(String),
    /// A picture: raw bytes (encoded only at the edge that needs it).
    Image {
        /// The encoded picture, for example a PNG file's bytes.
        #[serde(with = "base64_text")]
        data: Vec<u8>,
        /// Its mime type, for example `image/png`.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The encoded sound.
        #[serde(with = "base64_text")]
        data: Vec<u8>,
        /// Its mime type, for example `audio/wav`.
        mime_type: String,
    },
    /// A pointer to something the client can fetch itself.
    Link(Box<Link>),
    /// A text file with its content.
    TextFile {
        /// A name for it, as a URI.
        uri: String,
        /// Its content.
        text: String,
        /// Its mime type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A file with its content.
    Blob {
        /// A name for it, as a URI.
        uri: String,
        /// Its bytes.
        #[serde(with = "base64_text")]
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

    /// This part in a transcript: text unchanged, a text file below a bracketed line with its name, anything else as
    /// one such line.
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

/// A link to something that the client can fetch.
///
/// ```
/// use toolcrib_tool::{Content, Link};
///
/// let link = Link::new("https://example.org/a.png", "chart").mime_type("image/png");
/// assert_eq!(Content::from(link).as_text(), "[link chart: https://example.org/a.png]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Link {
    /// Its address.
    pub uri: String,
    /// What to call it.
    pub name: String,
    /// The display name, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for models and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its mime type, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How large it is, in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Link {
    /// A link to `uri`.
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

    /// Sets the mime type of the target.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The members by name, as JSON; absent ones are left out.
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

/// A text part has its text as a member beside its `type`.
mod text_member {
    use super::{Deserialize, Serialize};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Part<T> {
        text: T,
    }

    pub(super) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        Part { text }.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
        Part::deserialize(from).map(|part| part.text)
    }
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

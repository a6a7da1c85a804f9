//! Icons of a tool, a prompt or a resource.

use serde_json::{Map, Value};

/// An icon that clients may show. Clients fetch the picture; its content is not checked here.
///
/// ```
/// use toolcrib_tool::Icon;
///
/// let icon = Icon::new("https://example.org/logs.png")?.with_sizes(["48x48"]);
/// assert_eq!(icon.to_value()["sizes"][0], "48x48");
/// assert!(Icon::new("javascript:alert(1)").is_err());
/// # Ok::<(), toolcrib_tool::InvalidIcon>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    src: String,
    mime_type: Option<String>,
    sizes: Vec<String>,
    theme: Option<IconTheme>,
}

/// The background for which an icon is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IconTheme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

impl IconTheme {
    /// The name in manifests and protocols.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// An address that clients must not fetch as a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidIcon;

impl std::fmt::Display for InvalidIcon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an icon must be an `https://` address or a `data:image/…;base64,…` URL")
    }
}

impl std::error::Error for InvalidIcon {}

impl Icon {
    /// An icon at an `https:` address, or in a `data:image/…` one.
    pub fn new(src: impl Into<String>) -> Result<Self, InvalidIcon> {
        let src = src.into();
        let known = ["https://", "data:image/"];
        let plain = !src.chars().any(|c| c.is_whitespace() || c.is_control());
        // A careless client could run or read addresses with other schemes.
        if plain && known.iter().any(|known| src.len() > known.len() && src.starts_with(known)) {
            Ok(Self { src, mime_type: None, sizes: Vec::new(), theme: None })
        } else {
            Err(InvalidIcon)
        }
    }

    /// Sets its type, for clients that cannot derive it from the address.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the sizes for which it is suitable: `48x48`, or `any`.
    #[must_use]
    pub fn with_sizes(mut self, sizes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sizes = sizes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the background for which it is made. Default: any.
    #[must_use]
    pub fn with_theme(mut self, theme: IconTheme) -> Self {
        self.theme = Some(theme);
        self
    }

    /// Its address.
    pub fn src(&self) -> &str {
        &self.src
    }

    /// The icon in MCP's format.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        object.insert("src".into(), self.src.as_str().into());
        if let Some(mime_type) = &self.mime_type {
            object.insert("mimeType".into(), mime_type.as_str().into());
        }
        if !self.sizes.is_empty() {
            object.insert("sizes".into(), self.sizes.as_slice().into());
        }
        if let Some(theme) = self.theme {
            object.insert("theme".into(), theme.as_str().into());
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_pictures_are_accepted() {
        for good in ["https://a.example/i.svg", "data:image/png;base64,aGk="] {
            assert_eq!(Icon::new(good).map(|icon| icon.src().to_owned()), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "https://",
            "http://a.example/i.png",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https://a.example/ i.png",
            "icon.png",
        ] {
            assert_eq!(Icon::new(bad), Err(InvalidIcon), "{bad}");
        }
    }
}

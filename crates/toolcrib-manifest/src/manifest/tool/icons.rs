//! `icons`: pictures of a tool, a prompt or a resource.

use toolcrib_tool::{Icon, IconTheme};

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::fields::Fields;
use crate::manifest::keys;

const THEMES: [IconTheme; 2] = [IconTheme::Light, IconTheme::Dark];

/// The icons that are right.
pub(in crate::manifest) fn icons(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Vec<Icon> {
    let list = fields.node("icons").map(Node::items).unwrap_or_default();
    list.iter().filter_map(|node| icon(node, findings)).collect()
}

fn icon(node: &Node, findings: &mut Findings<'_>) -> Option<Icon> {
    let fields = Fields::read(node, &keys::ICON, findings)?;
    let src = fields.node("src")?;
    let mut icon = match Icon::new(src.as_str()?) {
        Ok(icon) => icon.with_sizes(fields.texts("sizes").unwrap_or_default()),
        Err(error) => {
            let message = "clients should not load images from this address";
            findings.add(Diagnostic::error("bad-icon", &src.span, message).help(error.to_string()));
            return None;
        }
    };
    if let Some(mime_type) = fields.text("mime_type") {
        icon = icon.with_mime_type(mime_type);
    }
    let theme = fields.text("theme");
    match THEMES.into_iter().find(|known| Some(known.as_str()) == theme) {
        Some(theme) => Some(icon.with_theme(theme)),
        None => Some(icon),
    }
}

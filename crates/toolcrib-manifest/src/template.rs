//! Templates: strings with `${…}` references, parsed once at load and never again.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

/// A string of a manifest, split into literals and references.
///
/// A value that replaces a reference is not parsed again: text in a value that looks like a
/// reference stays text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// Literals and references, in order; adjacent literals are merged.
    pub pieces: Vec<Piece>,
}

/// The text in the notation of manifests: parsing it yields the same template.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(text) => f.write_str(&text.replace("${", "$${")),
            Piece::Reference(reference) => reference.fmt(f),
        })
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A piece of a [`Template`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal text, with `$${` replaced by `${`.
    Literal(String),
    /// A reference to a value, which is inserted in each call.
    Reference(Reference),
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// `${args.x}`: an argument of the call.
    Arg(String),
    /// `${ctx.x}`: a value of the host's context.
    Ctx(String),
    /// `${env.X}`: a variable of the server's own environment.
    Env(String),
    /// `${secret.x}`: a configured secret.
    Secret(String),
}

impl Reference {
    /// Parses the text between `${` and `}`.
    fn parse(inside: &str) -> Result<Self, String> {
        let (kind, name) = inside.split_once('.').unwrap_or((inside, ""));
        let make = match kind {
            "args" => Self::Arg,
            "ctx" => Self::Ctx,
            "env" => Self::Env,
            "secret" => Self::Secret,
            _ => {
                return Err(format!(
                    "`${{{inside}}}` is not a reference: only args, ctx, env and secret are known"
                ));
            }
        };
        let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if name.is_empty() {
            return Err(format!("`${{{inside}}}` names nothing"));
        }
        if !name.chars().all(plain) {
            return Err(format!(
                "`${{{inside}}}` is not a reference: names have letters, digits, `_`, `-` and `.`"
            ));
        }
        Ok(make(name.to_owned()))
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arg(name) => write!(f, "${{args.{name}}}"),
            Self::Ctx(name) => write!(f, "${{ctx.{name}}}"),
            Self::Env(name) => write!(f, "${{env.{name}}}"),
            Self::Secret(name) => write!(f, "${{secret.{name}}}"),
        }
    }
}

/// A malformed reference.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateError {
    /// Its byte range in the template's text.
    pub range: Range<usize>,
    /// The problem, as one clause.
    pub message: String,
}

impl Template {
    /// Parses a text. `$${` stands for a literal `${`; a single `$` is text.
    ///
    /// ```
    /// use toolcrib_manifest::template::{Reference, Template};
    ///
    /// let template = Template::parse("--tail=${args.lines}")?;
    /// assert_eq!(template.references().next(), Some(&Reference::Arg("lines".to_owned())));
    /// assert!(Template::parse("$${HOME}")?.references().next().is_none());
    /// # Ok::<(), Vec<toolcrib_manifest::template::TemplateError>>(())
    /// ```
    ///
    /// # Errors
    /// All malformed references: unclosed, of an unknown kind, or without a name.
    pub fn parse(text: &str) -> Result<Self, Vec<TemplateError>> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut errors = Vec::new();
        let mut rest = 0;
        while let Some(dollar) = text[rest..].find('$').map(|found| rest + found) {
            literal.push_str(&text[rest..dollar]);
            let after = &text[dollar..];
            if after.starts_with("$${") {
                literal.push_str("${");
                rest = dollar + 3;
            } else if !after.starts_with("${") {
                literal.push('$');
                rest = dollar + 1;
            } else if let Some(length) = after.find('}') {
                rest = dollar + length + 1;
                match Reference::parse(&text[dollar + 2..rest - 1]) {
                    Ok(reference) => {
                        if !literal.is_empty() {
                            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                        }
                        pieces.push(Piece::Reference(reference));
                    }
                    Err(message) => errors.push(TemplateError { range: dollar..rest, message }),
                }
            } else {
                let message = "`${` is never closed".to_owned();
                errors.push(TemplateError { range: dollar..text.len(), message });
                rest = text.len();
            }
        }
        literal.push_str(&text[rest..]);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        if errors.is_empty() { Ok(Self { pieces }) } else { Err(errors) }
    }

    /// The reference, if the template is a single reference: such a template keeps the value's JSON
    /// type.
    pub fn as_single_reference(&self) -> Option<&Reference> {
        match self.pieces.as_slice() {
            [Piece::Reference(reference)] => Some(reference),
            _ => None,
        }
    }

    /// All references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Literal(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_lone_dollars_are_text() {
        let template = Template::parse("$5 $${args.x} ${args.x}$").unwrap();
        assert_eq!(
            template.pieces,
            [
                Piece::Literal("$5 ${args.x} ".to_owned()),
                Piece::Reference(Reference::Arg("x".to_owned())),
                Piece::Literal("$".to_owned()),
            ]
        );
    }

    #[test]
    fn writing_a_parsed_template_yields_the_same_text() {
        for text in ["$5 $${args.x} ${args.x}$", "", "${ctx.a}${env.B}", "a$", "$$${secret.x}"] {
            let template = Template::parse(text).unwrap();
            assert_eq!(Template::parse(&template.to_string()).unwrap(), template, "{text}");
        }
    }

    #[test]
    fn every_malformed_reference_is_found_with_its_place() {
        let text = "${arg.x} ${args.} ${} ${HOME} ${args.x";
        let errors = Template::parse(text).unwrap_err();
        let places: Vec<&str> = errors.iter().map(|error| &text[error.range.clone()]).collect();
        assert_eq!(places, ["${arg.x}", "${args.}", "${}", "${HOME}", "${args.x"]);
    }
}

//! What an export reports beside the JSON: what was changed, and what was refused.

use std::fmt;

/// Something that a provider does not see, or sees differently.
///
/// Calls lose nothing by it: arguments are validated against the tool's own schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Note {
    /// The tool's own name.
    pub tool: String,
    /// JSON pointer into the tool's input schema; empty for the tool itself or the schema's root.
    pub at: String,
    /// What was changed, as a clause.
    pub text: String,
    /// Whether the description says the same in words, so that the model misses nothing.
    pub restated: bool,
}

/// A tool that cannot be exported to a provider without a change of meaning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Refusal {
    /// The tool's own name.
    pub tool: String,
    /// JSON pointer into the tool's input schema; empty for the tool itself or the schema's root.
    pub at: String,
    /// The reason.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {:?} cannot be exported: {}", self.tool, self.reason)?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " (at {} of its input schema)", self.at) }
    }
}

/// Why a tool was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Another exported tool has the same name.
    Duplicate,
    /// Something there is not a JSON Schema of any draft.
    NotASchema(String),
    /// The arguments of a call are an object, but the schema says otherwise.
    NotAnObject,
    /// No value fits the schema.
    AdmitsNothing,
    /// Any value fits, but the target needs a type.
    AnyValue,
    /// Properties with any name fit, but the target needs every name.
    OpenObject,
    /// The target lacks this keyword, and without it the schema has another meaning.
    Keyword(&'static str),
    /// A `$ref` does not lead into the schema.
    Reference(String),
    /// The schema contains itself, but the target has no references.
    Recursive,
    /// The parts of an `allOf` cannot be combined into one schema.
    Conflict(String),
    /// A required property has no schema.
    UnknownRequired(String),
    /// The target refuses this property name.
    PropertyName(String),
    /// The schema exceeds a limit of the target.
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => f.write_str("another tool has the same name"),
            Self::NotASchema(what) => write!(f, "{what} is not a JSON Schema"),
            Self::NotAnObject => f.write_str("the schema's root is not of type object"),
            Self::AdmitsNothing => f.write_str("no value fits the schema"),
            Self::AnyValue => f.write_str("any value fits, and the provider needs a type"),
            Self::OpenObject => {
                f.write_str("any property fits, and the provider needs every property's name")
            }
            Self::Keyword(keyword) => write!(f, "the provider does not accept `{keyword}` there"),
            Self::Reference(target) => {
                write!(f, "the reference {target:?} does not lead into the schema")
            }
            Self::Recursive => {
                f.write_str("the schema contains itself, and the provider has no references")
            }
            Self::Conflict(keyword) => {
                write!(f, "the parts of `allOf` disagree on `{keyword}`")
            }
            Self::UnknownRequired(name) => {
                write!(f, "property {name:?} is required but has no schema")
            }
            Self::PropertyName(name) => {
                write!(f, "the provider does not accept a property named {name:?}")
            }
            Self::Limit { what, limit } => write!(f, "more than {limit} {what}"),
        }
    }
}

/// A refusal without the tool's name, which the caller adds.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) at: String,
    pub(crate) reason: Reason,
}

/// How many nested positions an export follows before it calls a schema too deep.
const MAX_DEPTH: usize = 100;

/// How many schemas an export reads before it calls a schema too large: when references are resolved, a few of them can
/// become any number of schemas.
const BUDGET: usize = 50_000;

/// The position of a conversion in a schema, and its notes so far.
#[derive(Debug)]
pub(crate) struct Walk {
    path: Vec<String>,
    depth: usize,
    /// How many more schemas may be read.
    budget: usize,
    notes: Vec<(String, String, bool)>,
}

impl Default for Walk {
    fn default() -> Self {
        Self { path: Vec::new(), depth: 0, budget: BUDGET, notes: Vec::new() }
    }
}

impl Walk {
    /// A walk that may read this many more schemas than usual.
    pub(crate) fn with_extra(schemas: usize) -> Self {
        Self { budget: BUDGET.saturating_add(schemas), ..Self::default() }
    }

    /// Counts schemas that are read or copied.
    pub(crate) fn spend(&mut self, schemas: usize) -> Result<(), Refused> {
        match self.budget.checked_sub(schemas) {
            Some(rest) => {
                self.budget = rest;
                Ok(())
            }
            None => Err(self.refuse(Reason::Limit { what: "schemas", limit: BUDGET })),
        }
    }

    /// Runs `step` one level deeper.
    pub(crate) fn within<T>(
        &mut self,
        segments: &[&str],
        step: impl FnOnce(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        if self.depth >= MAX_DEPTH {
            return Err(self.refuse(Reason::Limit { what: "levels of schemas", limit: MAX_DEPTH }));
        }
        self.spend(1)?;
        self.path.extend(segments.iter().map(|segment| (*segment).to_owned()));
        self.depth += 1;
        let done = step(self);
        self.depth -= 1;
        self.path.truncate(self.path.len() - segments.len());
        done
    }

    /// [`within`](Self::within), without the notes of a step that is refused.
    pub(crate) fn attempt<T>(
        &mut self,
        segments: &[&str],
        step: impl FnOnce(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let notes = self.notes.len();
        let done = self.within(segments, step);
        if done.is_err() {
            self.notes.truncate(notes);
        }
        done
    }

    pub(crate) fn at_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Notes that the target does not see something.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.add(text.into(), false);
    }

    /// Notes that the target sees something in other words.
    pub(crate) fn restate(&mut self, text: impl Into<String>) {
        self.add(text.into(), true);
    }

    fn add(&mut self, text: String, restated: bool) {
        let note = (self.pointer(), text, restated);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Takes over the notes of a walk through another schema of the same tool.
    pub(crate) fn absorb(&mut self, other: Self) {
        let notes = other.notes.into_iter();
        self.notes.extend(notes.map(|(at, text, restated)| {
            (String::new(), format!("output schema{at}: {text}"), restated)
        }));
    }

    pub(crate) fn refuse(&self, reason: Reason) -> Refused {
        Refused { at: self.pointer(), reason }
    }

    pub(crate) fn into_notes(self, tool: &str) -> impl Iterator<Item = Note> {
        let tool = tool.to_owned();
        self.notes.into_iter().map(move |(at, text, restated)| Note {
            tool: tool.clone(),
            at,
            text,
            restated,
        })
    }

    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |pointer, segment| {
            pointer + "/" + &segment.replace('~', "~0").replace('/', "~1")
        })
    }
}

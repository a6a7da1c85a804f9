//! Which tools of a server are offered, and what replaces the server's own words about them.

use std::collections::BTreeMap;
use std::fmt;

use toolcrib_core::{Pattern, exposed_name};
use toolcrib_tool::{AnnotationOverrides, Approval, Origin};

/// What replaces a server's words about one of its tools.
///
/// ```
/// use toolcrib_mcp::upstream::{StdioServer, ToolOverride, Upstream};
///
/// let issue = ToolOverride::new().name("issue").description("Read one issue.");
/// let github = Upstream::stdio("github", StdioServer::new("github-mcp-server"))
///     .override_tool("get_issue", issue);
/// assert!(github.may_offer("github_issue"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOverride {
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) annotations: AnnotationOverrides,
    pub(crate) approval: Option<Approval>,
    pub(crate) origin: Option<Origin>,
}

impl ToolOverride {
    /// Replaces nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the part of the tool's name that follows the prefix.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the title, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description, for models.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets hints about the tool's effects. They count even if the server's own do not.
    #[must_use]
    pub fn annotations(mut self, annotations: AnnotationOverrides) -> Self {
        self.annotations = annotations;
        self
    }

    /// Sets when calls of the tool wait for a person. Default: as the upstream says.
    #[must_use]
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Sets the place where it is declared.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }
}

/// A name or a pattern of names, and the place where it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct NamePattern {
    pattern: Pattern,
    origin: Option<Origin>,
}

impl NamePattern {
    /// A pattern in which `*` stands for any characters.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: Pattern::new(pattern), origin: None }
    }

    /// Sets the place where it is declared.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }
}

impl<P: Into<String>> From<P> for NamePattern {
    fn from(pattern: P) -> Self {
        Self::new(pattern)
    }
}

/// Patterns of what is taken and of what is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    pub(crate) include: Vec<NamePattern>,
    pub(crate) exclude: Vec<NamePattern>,
}

impl Filter {
    /// Whether a name is taken. Without `include` all are.
    pub(crate) fn takes(&self, name: &str) -> bool {
        let fits = |patterns: &[NamePattern]| patterns.iter().any(|own| own.matches(name));
        (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }

    /// Whether a tool is taken of whose name only this is known, in which `_` may stand for a character
    /// that no name here has.
    pub(crate) fn may_take(&self, shown: &str) -> bool {
        let kept = |c: char| if c.is_ascii_alphanumeric() || "_-*?".contains(c) { c } else { '_' };
        let fits = |patterns: &[NamePattern]| {
            patterns.iter().any(|own| {
                let pattern: String = own.pattern.as_str().chars().map(kept).collect();
                Pattern::new(pattern).matches(shown) || own.matches(shown)
            })
        };
        (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }

    /// The patterns that match none of these names. `section` is the key of the filter.
    fn unmatched(&self, section: &str, names: &[&str]) -> Vec<UnmatchedSetting> {
        let both = [("include", &self.include), ("exclude", &self.exclude)];
        let all = both.into_iter().flat_map(|(key, list)| list.iter().map(move |own| (key, own)));
        let useless = all.filter(|(_, own)| !names.iter().any(|name| own.matches(name)));
        let told = useless.map(|(key, own)| UnmatchedSetting {
            key: format!("{section}.{key}"),
            name: own.pattern.as_str().to_owned(),
            problem: UnmatchedReason::NoSuchName,
            origin: own.origin.clone(),
        });
        told.collect()
    }
}

/// Which tools are offered, under which names, and with which words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selection {
    pub(crate) prefix: Option<String>,
    pub(crate) filter: Filter,
    pub(crate) overrides: BTreeMap<String, ToolOverride>,
}

impl Selection {
    /// The name here of a tool that the server calls `tool`.
    pub(crate) fn name_here(&self, upstream: &str, tool: &str) -> String {
        let renamed = self.overrides.get(tool).and_then(|own| own.name.as_deref());
        let own = renamed.unwrap_or(tool);
        match self.prefix.as_deref() {
            // The mapping of characters and the cut are those of a name with a prefix.
            Some("") => exposed_name("", own)[1..].to_owned(),
            Some(prefix) => exposed_name(prefix, own),
            None => exposed_name(upstream, own),
        }
    }

    /// What all names here begin with; empty if the tools keep the server's names.
    pub(crate) fn begins_with(&self, upstream: &str) -> String {
        match self.prefix.as_deref() {
            Some("") => String::new(),
            Some(prefix) => exposed_name(prefix, ""),
            None => exposed_name(upstream, ""),
        }
    }

    /// Whether a tool of this name here could be one of the server's.
    pub(crate) fn may_offer(&self, upstream: &str, name: &str) -> bool {
        let mut renamed = self.overrides.iter().filter(|(_, own)| own.name.is_some());
        if renamed.any(|(tool, _)| self.name_here(upstream, tool) == name) {
            return true;
        }
        match self.prefix.as_deref() {
            Some("") => self.filter.takes(name),
            // What every name begins with, whatever the tool is called.
            _ => name.starts_with(&self.begins_with(upstream)),
        }
    }

    /// What names no tool of the server, which has these.
    pub(crate) fn unmatched(&self, tools: &[&str]) -> Vec<UnmatchedSetting> {
        let mut all = self.filter.unmatched("tools", tools);
        for (tool, own) in &self.overrides {
            let problem = if !tools.contains(&tool.as_str()) {
                UnmatchedReason::NoSuchName
            } else if !self.filter.takes(tool) {
                UnmatchedReason::LeftOut
            } else {
                continue;
            };
            let (key, origin) = ("tools.override".to_owned(), own.origin.clone());
            all.push(UnmatchedSetting { key, name: tool.clone(), problem, origin });
        }
        all
    }
}

/// A filter or an override of an upstream that has no effect, because the connected server has nothing
/// of that name; or a tool of the server whose name belongs to another upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnmatchedSetting {
    /// The key that has it: `tools.include`, `tools.exclude`, `tools.override`; `tools` for a tool.
    pub key: String,
    /// The name or pattern.
    pub name: String,
    /// Why it has no effect.
    pub problem: UnmatchedReason,
    /// The place where it is declared.
    pub origin: Option<Origin>,
}

/// Why a filter or an override has no effect, or why a tool is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnmatchedReason {
    /// The server has nothing of that name.
    NoSuchName,
    /// The server has it, but `include` or `exclude` leaves it out.
    LeftOut,
    /// The server has it, but its name here begins with the longer prefix of another upstream.
    BelongsToAnother,
}

impl fmt::Display for UnmatchedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Origin { file, line, column }) = &self.origin {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        let Self { key, name, .. } = self;
        match self.problem {
            UnmatchedReason::NoSuchName => {
                write!(f, "`{key}`: the server has nothing that matches `{name}`")
            }
            UnmatchedReason::LeftOut => {
                write!(f, "`{key}`: `{name}` is left out by `include` or `exclude`")
            }
            UnmatchedReason::BelongsToAnother => write!(
                f,
                "`{key}`: `{name}` is left out, because names with that prefix belong to another \
                 upstream; give it another one with `override`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(prefix: Option<&str>) -> Selection {
        let overrides = [("get.issue".to_owned(), ToolOverride::new().name("issue"))].into();
        let filter = Filter { include: vec!["get*".into()], exclude: vec!["get_secret".into()] };
        Selection { prefix: prefix.map(str::to_owned), filter, overrides }
    }

    #[test]
    fn names_here_have_the_prefix_and_the_name_that_was_given() {
        for (prefix, names) in [
            (None, ["github_issue", "github_get_all"]),
            (Some("gh"), ["gh_issue", "gh_get_all"]),
            (Some(""), ["issue", "get_all"]),
        ] {
            let selection = selection(prefix);
            let here = ["get.issue", "get.all"].map(|tool| selection.name_here("github", tool));
            assert_eq!(here, names);
            assert!(names.iter().all(|name| selection.may_offer("github", name)), "{names:?}");
            assert!(!selection.may_offer("github", "other_tool"));
        }
        let whole = Selection { prefix: Some(String::new()), ..Selection::default() };
        assert_eq!(whole.name_here("github", &"x".repeat(80)).len(), 63);
    }

    #[test]
    fn what_matches_nothing_is_named() {
        let told: Vec<_> =
            selection(None).unmatched(&["get_all"]).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`tools.exclude`: the server has nothing that matches `get_secret`",
                "`tools.override`: the server has nothing that matches `get.issue`",
            ]
        );
        let mut narrow = selection(None);
        narrow.filter.exclude = vec!["get.*".into()];
        let told = narrow.unmatched(&["get.issue", "get_all"]);
        assert_eq!((told.len(), told[0].problem), (1, UnmatchedReason::LeftOut));
    }
}

//! Policy: which calls run, which wait for a person, and which are refused.

mod error;
mod matching;
mod rule;
#[cfg(test)]
mod tests;
mod verdict;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_tool::{Approval, Arguments, ToolDefinition, ToolEntry};

pub use error::PolicyError;
use matching::CompiledRule;
pub use rule::{Action, ArgumentPattern, PolicyRule};
pub use verdict::{DecidedBy, Verdict};

/// What happens to a call that needs approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnAsk {
    /// The call waits until somebody approves or denies it.
    #[default]
    Wait,
    /// The call runs without approval. Denied calls stay denied.
    Allow,
    /// The call is refused.
    Deny,
}

/// The host's rules, in order, and what happens to calls that need approval.
///
/// The first rule that matches a call decides; if none does, the tool's own
/// [`approval`](ToolDefinition::approval) decides. The default has no rules.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::Value;
/// use toolcrib_core::policy::{ArgumentPattern, OnAsk, Policy, PolicyRule, Verdict};
/// use toolcrib_tool::{Arguments, Layer, Source, ToolDefinition, ToolEntry, tool_fn};
///
/// let policy = Policy::new(OnAsk::Wait, [
///     PolicyRule::deny()
///         .tool("db_*")
///         .argument("sql", ArgumentPattern::regex(r"(?i)\bdrop\b"))
///         .message("Nothing is dropped here."),
///     PolicyRule::ask().tool("db_*"),
/// ])?;
///
/// let definition = ToolDefinition::builder("db_query").description("Query.").build()?;
/// let body = Arc::new(tool_fn(|_: Value, _| async { "rows" }));
/// let entry = ToolEntry::new(definition, body, Source::new(Layer::Host, "doc"));
///
/// let harmless = Arguments::from_validated(r#"{"sql": "select 1"}"#.to_owned());
/// assert!(matches!(policy.decide(&entry, &harmless), Verdict::Ask { .. }));
///
/// let drop = Arguments::from_validated(r#"{"sql": "DROP TABLE users"}"#.to_owned());
/// let Verdict::Deny { message, .. } = policy.decide(&entry, &drop) else { panic!("it is denied") };
/// assert_eq!(message, "Nothing is dropped here.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The same in a config file:
///
/// ```yaml
/// policy:
///   on_ask: wait
///   rules:
///     - tool: db_*
///       arguments: { sql: { regex: '(?i)\bdrop\b' } }
///       action: deny
///       message: Nothing is dropped here.
///     - { tool: db_*, action: ask }
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PolicyConfig", into = "PolicyConfig")]
#[schemars(with = "PolicyConfig")]
pub struct Policy {
    on_ask: OnAsk,
    rules: Arc<[CompiledRule]>,
}

/// A policy in the form of a config file.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Policy", extend("x-renamed" = {
    "mode": "`policy.mode` is now `policy.on_ask`: write `wait` for `guarded`, `allow` for `yolo`"
}))]
#[serde(default, deny_unknown_fields)]
struct PolicyConfig {
    /// What happens to calls that need approval.
    on_ask: OnAsk,
    /// The rules; the first that matches a call decides.
    rules: Vec<PolicyRule>,
}

impl From<Policy> for PolicyConfig {
    fn from(policy: Policy) -> Self {
        let rules = policy.rules.iter().map(|rule| rule.written.clone()).collect();
        Self { on_ask: policy.on_ask, rules }
    }
}

impl TryFrom<PolicyConfig> for Policy {
    type Error = PolicyError;

    fn try_from(written: PolicyConfig) -> Result<Self, PolicyError> {
        Self::new(written.on_ask, written.rules)
    }
}

impl Policy {
    /// Compiles the rules. Fails at the first invalid pattern and names its rule and position.
    pub fn new(
        on_ask: OnAsk,
        rules: impl IntoIterator<Item = PolicyRule>,
    ) -> Result<Self, PolicyError> {
        let rules = rules
            .into_iter()
            .enumerate()
            .map(|(position, rule)| CompiledRule::compile(position, rule))
            .collect::<Result<_, _>>()?;
        Ok(Self { on_ask, rules })
    }

    /// What happens to calls that need approval.
    pub fn on_ask(&self) -> OnAsk {
        self.on_ask
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &PolicyRule> {
        self.rules.iter().map(|rule| &rule.written)
    }

    /// Whether [`decide`](Self::decide) could return anything but "allow" for a call of this tool.
    /// For calls that no rule concerns, this costs two comparisons.
    pub fn needs_look(&self, definition: &ToolDefinition) -> bool {
        !self.rules.is_empty() || self.on_ask != OnAsk::Allow && asks_by_itself(definition)
    }

    /// The verdict on a call that nothing denies and that the host wants to be asked about.
    pub(crate) fn asked_by_host(&self, reason: &str) -> Verdict {
        let (by, reason) = (DecidedBy::Host, reason.to_owned());
        match self.on_ask {
            OnAsk::Wait | OnAsk::Allow => Verdict::Ask { by, reason },
            OnAsk::Deny => Verdict::Deny { by, message: reason },
        }
    }

    /// Decides a call. `arguments` are those the tool would get.
    ///
    /// Patterns match the arguments as text, whatever it means: a rule that allows `src/*` also
    /// allows `src/../secrets`. Rules do not replace the checks that tools make themselves.
    pub fn decide(&self, entry: &ToolEntry, arguments: &Arguments) -> Verdict {
        self.ruled(entry, arguments).unwrap_or_else(|| self.by_definition(entry))
    }

    /// The verdict that the tool's own definition gives every call.
    fn by_definition(&self, entry: &ToolEntry) -> Verdict {
        let by = DecidedBy::Definition;
        if !asks_by_itself(&entry.definition) {
            return Verdict::Allow { by };
        }
        let reason = match entry.definition.approval() {
            Approval::Destructive => "the tool may destroy something",
            _ => "the tool asks for approval of every call",
        };
        self.asked(by, || reason.to_owned())
    }

    /// The verdict for every call of this tool, if the arguments cannot change it. The reason and
    /// the rule are those of a call that matches no rule with an argument pattern.
    pub fn verdict_of_every_call(&self, entry: &ToolEntry) -> Option<Verdict> {
        let mut narrow = Vec::new();
        let mut general = None;
        for rule in self.rules.iter().filter(|rule| rule.may_match(entry)) {
            if rule.written.arguments.is_empty() {
                general = Some(self.verdict(rule));
                break;
            }
            narrow.push(std::mem::discriminant(&self.verdict(rule)));
        }
        let general = general.unwrap_or_else(|| self.by_definition(entry));
        let decision = std::mem::discriminant(&general);
        narrow.iter().all(|own| *own == decision).then_some(general)
    }

    /// The verdict of the first matching rule; `None` if no rule matches.
    pub(crate) fn ruled(&self, entry: &ToolEntry, arguments: &Arguments) -> Option<Verdict> {
        let rule = self.rules.iter().find(|rule| rule.matches(entry, arguments))?;
        Some(self.verdict(rule))
    }

    /// The verdict of a matching rule.
    fn verdict(&self, rule: &CompiledRule) -> Verdict {
        let by = rule.decided_by();
        let message =
            |fallback: &str| rule.written.message.clone().unwrap_or_else(|| fallback.to_owned());
        match rule.written.action {
            Action::Allow => Verdict::Allow { by },
            Action::Deny => Verdict::Deny {
                by,
                message: message("a rule of the host does not allow this call"),
            },
            Action::Ask => {
                self.asked(by, || message("a rule of the host asks for approval of this call"))
            }
        }
    }

    /// Whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn asked(&self, by: DecidedBy, reason: impl FnOnce() -> String) -> Verdict {
        match self.on_ask {
            OnAsk::Wait => Verdict::Ask { by, reason: reason() },
            OnAsk::Allow => Verdict::Allow { by },
            OnAsk::Deny => Verdict::Deny {
                by,
                message: format!("{}; this host refuses calls that need approval", reason()),
            },
        }
    }
}

/// Whether calls need approval if no rule says otherwise.
pub(crate) fn asks_by_itself(definition: &ToolDefinition) -> bool {
    match definition.approval() {
        Approval::Never => false,
        Approval::Destructive => definition.annotations().may_destroy(),
        Approval::Always => true,
    }
}

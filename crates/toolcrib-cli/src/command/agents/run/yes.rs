//! `--yes RULE`: calls that are approved in advance.

use serde_json::Value;
use toolcrib::Executor;
use toolcrib::core::Pattern;
use toolcrib::core::policy::{DecidedBy, OnAsk, Policy, PolicyError, PolicyRule, Verdict};
use toolcrib::core::suspension::{Suspension, Waiting};
use toolcrib::tool::Arguments;

/// Reads a rule: a tool's name with `*` and `?`, or the conditions of a rule of `policy.rules` as a JSON object.
pub(super) fn rule(text: &str) -> Result<PolicyRule, String> {
    if !text.starts_with('{') {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.*?".contains(c);
        return if !text.is_empty() && text.chars().all(is_name) {
            Ok(PolicyRule::allow().tool(text))
        } else {
            Err("a rule is a tool's name, in which * is any text, or a JSON object such as \
                 {\"tool\": \"git\", \"arguments\": {\"command\": {\"glob\": \"log*\"}}}"
                .to_owned())
        };
    }
    let mut rule: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    for key in ["action", "message"] {
        if rule.get(key).is_some() {
            return Err(format!("`{key}` has no place here: the rule says what is approved"));
        }
    }
    rule["action"] = "allow".into();
    let rule: PolicyRule = serde_json::from_value(rule).map_err(|error| error.to_string())?;
    if rule == PolicyRule::allow() {
        return Err("the rule has no condition; to approve all calls, write '*'".to_owned());
    }
    Ok(rule)
}

/// The calls that are approved in advance.
pub(super) struct ApprovedCalls {
    rules: Policy,
    tools: Executor,
}

impl ApprovedCalls {
    pub(super) fn new(rules: &[PolicyRule], tools: Executor) -> Result<Self, PolicyError> {
        Ok(Self { rules: Policy::new(OnAsk::Wait, rules.iter().cloned())?, tools })
    }

    /// The tools of rules that no tool has, as they were written.
    pub(super) fn unknown(rules: &[PolicyRule], tools: &Executor) -> Vec<String> {
        let snapshot = tools.registry().snapshot();
        let written = rules.iter().filter_map(|rule| {
            let rule = serde_json::to_value(rule).ok()?;
            Some(rule.get("tool")?.as_str()?.to_owned())
        });
        written
            .filter(|tool| {
                let pattern = Pattern::new(tool.as_str());
                !snapshot.entries().any(|entry| pattern.matches(entry.name()))
            })
            .collect()
    }

    /// Whether a rule approves a call that waits for approval. Calls that a policy denies do not wait, so no rule
    /// concerns them.
    pub(super) fn include(&self, call: &Suspension) -> bool {
        if !matches!(call.waiting(), Waiting::Approval { .. }) || asks_anew(call) {
            return false;
        }
        let snapshot = self.tools.registry().snapshot();
        let Some(tool) = snapshot.get(call.tool()) else { return false };
        let arguments = Arguments::from_validated(call.arguments().to_owned());
        let verdict = self.rules.decide(tool, &arguments);
        matches!(verdict, Verdict::Allow { by: DecidedBy::Rule { .. } })
    }
}

/// Whether a call waits because it has perhaps run already. What was approved in advance is no answer to that.
pub(super) fn asks_anew(call: &Suspension) -> bool {
    let by_host = DecidedBy::Host.to_string();
    matches!(call.waiting(), Waiting::Approval { rule, .. } if *rule == by_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_name_or_conditions_and_never_an_action() {
        assert_eq!(rule("db_*"), Ok(PolicyRule::allow().tool("db_*")));
        assert_eq!(rule(r#"{"tool": "a"}"#), Ok(PolicyRule::allow().tool("a")));
        for wrong in ["", "a b", "{", "{}", r#"{"action": "deny"}"#, r#"{"tol": "a"}"#] {
            assert!(rule(wrong).is_err(), "{wrong}");
        }
    }
}

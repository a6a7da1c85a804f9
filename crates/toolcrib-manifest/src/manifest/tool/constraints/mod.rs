//! `constraints`: rules about arguments and context values, checked at load time.

mod slips;

use serde_json::Value;
use toolcrib_constraints::{Kind, Names, Rule, RuleError};

use crate::declaration::ConstraintSpec;
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::fields::Fields;
use crate::manifest::keys;
use crate::manifest::schema::checked::Checked;
use crate::manifest::tool::references::{HOST_VALUES, Scope};

/// The maximum number of rules of a tool: every call has to satisfy all of them.
const CONSTRAINTS_MAX: usize = 32;

/// Reads the rules of a tool, and records which arguments they use.
pub(in crate::manifest) fn read(
    fields: &Fields<'_>,
    input: Option<&Checked>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Vec<ConstraintSpec> {
    let Some(list) = fields.node("constraints") else { return Vec::new() };
    let names = names(input.map(|checked| &checked.value), scope);
    if let Some(node) = list.items().get(CONSTRAINTS_MAX) {
        let message = format!("a tool has at most {CONSTRAINTS_MAX} constraints");
        let diagnostic = Diagnostic::error("too-complex", &node.span, message);
        findings.add(diagnostic.help("join rules with `&&`"));
        return Vec::new();
    }
    let mut constraints = Vec::new();
    for item in list.items() {
        let Some(own) = Fields::read(item, &keys::CONSTRAINT, findings) else { continue };
        if let Some(entry) = own.entry("message")
            && own.text("message").is_some_and(|message| message.trim().is_empty())
        {
            let place = entry.node.visible_span(Some(entry));
            findings.add(
                Diagnostic::error("bad-constraint", &place, "the message is empty")
                    .help("say what would be right: the model reads it"),
            );
        }
        let Some((node, text)) = own.node("rule").zip(own.text("rule")) else { continue };
        match Rule::parse_for(text, &names) {
            Ok(rule) => {
                let uses = rule.uses(&names);
                for name in &uses.unguarded {
                    findings.add(unguarded(name, &place_of(name, node, findings.text)));
                }
                scope.used.extend(uses.arguments);
            }
            Err(errors) => {
                // A misspelt name is reported here, not as an unused argument.
                scope.unclear = true;
                let errors = match slips::find(text) {
                    // The rest of the rule would be misread.
                    Some(slip) => vec![RuleError {
                        range: slip.range,
                        message: slip.message,
                        help: Some(slip.help),
                    }],
                    None => errors,
                };
                for error in &errors {
                    findings.add(diagnostic(error, text, node, findings.text));
                }
            }
        }
        if let Some(message) = own.text("message") {
            let (rule, message) = (text.to_owned(), message.trim().to_owned());
            constraints.push(ConstraintSpec { rule, message });
        }
    }
    constraints
}

/// The names that rules may use.
fn names(input: Option<&Value>, scope: &Scope) -> Names {
    let property = |name: &str| input?.get("properties")?.get(name);
    let required = input.and_then(|input| input.get("required")).and_then(Value::as_array);
    let mut names = Names::new();
    for name in scope.arguments.keys() {
        let kind = match property(name).and_then(|schema| schema.get("type")) {
            Some(Value::String(kind)) if kind == "boolean" => Kind::Boolean,
            Some(Value::String(_)) => Kind::Other,
            _ => Kind::Unknown,
        };
        let present = property(name).is_some_and(|schema| schema.get("default").is_some())
            || required.is_some_and(|required| required.iter().any(|known| known == name));
        names = names.argument(name, kind, present);
    }
    let context = scope.context.iter().map(String::as_str).chain(HOST_VALUES);
    context.fold(names, Names::context)
}

fn diagnostic(error: &RuleError, rule: &str, node: &Node, text: &str) -> Diagnostic {
    let written = text.get(node.span.clone()).unwrap_or_default();
    // Quoting and folding move the text; then underline the whole rule.
    let place = match written.find(rule).filter(|_| !rule.is_empty()) {
        Some(start) => {
            let start = node.span.start + start;
            start + error.range.start..start + error.range.end
        }
        None => node.span.clone(),
    };
    let is_joint = ["'&&'", "'||'"].iter().any(|sign| error.message.contains(sign));
    let joined = "a comparison stands on each side: `args.a != '' && args.b > 1`";
    let help = error.help.clone().or_else(|| is_joint.then(|| joined.to_owned()));
    Diagnostic::error("bad-constraint", &place, error.message.as_str()).maybe_help(help)
}

fn unguarded(name: &str, place: &Span) -> Diagnostic {
    let message = format!("`{name}` may be absent, and every call without it is then refused");
    Diagnostic::warning("unguarded-argument", place, message)
        .help(format!("write `!has(args.{name}) || …`, give `{name}` a default, or require it"))
}

/// Where a rule first names an argument.
fn place_of(name: &str, node: &Node, text: &str) -> Span {
    let written = text.get(node.span.clone()).unwrap_or_default();
    match written.find(&format!("args.{name}")) {
        Some(start) => {
            let start = node.span.start + start;
            start..start + "args.".len() + name.len()
        }
        None => node.span.clone(),
    }
}

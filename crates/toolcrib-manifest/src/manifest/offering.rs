//! `prompts` and `resources`, which clients see besides tools.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use toolcrib_tool::ToolName;

use super::{Shared, keys};
use crate::declaration::{
    MessageContent, PromptArgument, PromptDeclaration, PromptMessage, ResourceContent,
    ResourceDeclaration,
};
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::Node;
use crate::fields::Fields;
use crate::manifest::tool::cases::origin;
use crate::manifest::tool::icons::icons;
use crate::manifest::tool::references::{Places, Scope, forms};

use crate::diagnostic::position::{Span, first_line};
use crate::template::{Piece, Reference, Template};

/// The default type of texts.
const PLAIN: &str = "text/plain";

/// Reads the list of prompts.
pub(super) fn prompts(
    list: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Vec<PromptDeclaration> {
    unique(list, "name", ("duplicate-prompt", "prompts"), findings);
    list.items().iter().filter_map(|node| prompt(node, shared, findings)).collect()
}

/// Reads the list of resources.
pub(super) fn resources(
    list: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Vec<ResourceDeclaration> {
    for key in ["uri", "template"] {
        unique(list, key, ("duplicate-resource", "resources"), findings);
    }
    list.items().iter().filter_map(|node| resource(node, shared, findings)).collect()
}

/// Reports items of a list with the same name.
fn unique(list: &Node, key: &str, (code, what): (&'static str, &str), findings: &mut Findings<'_>) {
    let mut names: HashMap<&str, &Span> = HashMap::new();
    for entry in list.items().iter().filter_map(|node| node.entry(key)) {
        let Some(name) = entry.node.as_str() else { continue };
        match names.get(name) {
            Some(first) => findings.add(
                Diagnostic::error(
                    code,
                    &entry.node.span,
                    format!("two {what} of this file are called `{name}`"),
                )
                .label("the same name again")
                .help("rename one of them")
                .also(first, "first used here"),
            ),
            None => {
                names.insert(name, &entry.node.span);
            }
        }
    }
}

fn prompt(
    node: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<PromptDeclaration> {
    let fields = Fields::read(node, &keys::PROMPT, findings)?;
    let named = fields.node("name").zip(fields.text("name"));
    let name = named.and_then(|(node, own)| {
        let whole =
            shared.namespace.map_or_else(|| own.to_owned(), |space| format!("{space}_{own}"));
        if let Err(error) = ToolName::new(&whole) {
            let message = error.to_string().replace("a tool name", "a prompt's name");
            findings.add(Diagnostic::error("bad-name", &node.span, message));
            return None;
        }
        Some(whole)
    });
    let mut arguments = Vec::new();
    let declared = fields.node("arguments").map(Node::items).unwrap_or_default();
    for fields in
        declared.iter().filter_map(|node| Fields::read(node, &keys::PROMPT_ARGUMENT, findings))
    {
        let Some(name) = fields.text("name") else { continue };
        arguments.push(PromptArgument {
            name: name.to_owned(),
            title: fields.text("title").map(str::to_owned),
            description: fields.text("description").map(str::to_owned),
            required: fields.flag("required").unwrap_or(false),
            suggest: fields.texts("suggest").unwrap_or_default(),
        });
    }
    let known: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
    let said = fields.node("messages");
    if let Some(said) = said
        && said.items().is_empty()
    {
        let message = "a prompt needs at least one message";
        findings.add(
            Diagnostic::error("no-single-content", &said.span, message)
                .help("write at least one: messages: [{role: user, text: Review this.}]"),
        );
    }
    let messages = said.map(Node::items).unwrap_or_default();
    let messages =
        messages.iter().filter_map(|node| message(node, &known, findings)).collect::<Vec<_>>();
    let icons = icons(&fields, findings);
    Some(PromptDeclaration {
        name: name?,
        title: fields.text("title").map(str::to_owned),
        icons,
        description: fields.text("description")?.to_owned(),
        messages,
        arguments,
        origin: origin(shared.file, &shared.lines, &fields.node("name")?.span),
    })
}

fn message(node: &Node, known: &[&str], findings: &mut Findings<'_>) -> Option<PromptMessage> {
    let fields = Fields::read(node, &keys::PROMPT_MESSAGE, findings)?;
    let content = match only(&fields, &["text", "file", "resource"], "a message", findings)? {
        "text" => MessageContent::Text(template(&fields, "text", known, findings)?),
        "resource" => MessageContent::Resource(template(&fields, "resource", known, findings)?),
        _ => MessageContent::File {
            path: PathBuf::from(fields.text("file")?),
            mime_type: type_of_file(&fields, findings)?,
        },
    };
    Some(PromptMessage { by_assistant: fields.text("role")? == keys::ASSISTANT, content })
}

fn resource(
    node: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<ResourceDeclaration> {
    let fields = Fields::read(node, &keys::OFFERED_RESOURCE, findings)?;
    let key = only(&fields, &["uri", "template"], "a resource", findings);
    let address = key.and_then(|key| {
        let (node, uri) = fields.node(key).zip(fields.text(key))?;
        let variables = variables(uri).and_then(|variables| match key {
            "uri" if !variables.is_empty() => {
                Err("an address has no variables: write `template` instead of `uri`".to_owned())
            }
            "template" if variables.is_empty() => {
                Err("a template has variables, such as {name}: write `uri` instead".to_owned())
            }
            _ => Ok(variables),
        });
        match variables {
            Ok(variables) => Some((node, uri, variables)),
            Err(problem) => {
                findings.add(
                    Diagnostic::error("bad-uri", &node.span, problem)
                        .help("an address is written notes://today, a template notes://{day}"),
                );
                None
            }
        }
    });
    let known: Vec<&str> = match &address {
        Some((_, _, variables)) => variables.iter().map(String::as_str).collect(),
        None => Vec::new(),
    };
    let content = match only(&fields, &["text", "file"], "a resource", findings)? {
        "text" => ResourceContent::Text(template(&fields, "text", &known, findings)?),
        _ => ResourceContent::File(PathBuf::from(fields.text("file")?)),
    };
    let mime_type = match &content {
        ResourceContent::Text(_) => fields.text("mime_type").unwrap_or(PLAIN).to_owned(),
        ResourceContent::File(_) => type_of_file(&fields, findings)?,
    };
    let suggest = suggestions(&fields, &known, findings);
    let icons = icons(&fields, findings);
    let (node, uri, variables) = address?;
    Some(ResourceDeclaration {
        uri: uri.to_owned(),
        variables,
        name: fields.text("name")?.to_owned(),
        title: fields.text("title").map(str::to_owned),
        icons,
        description: fields.text("description").map(str::to_owned),
        mime_type,
        content,
        suggest,
        origin: origin(shared.file, &shared.lines, &node.span),
    })
}

/// The only one of these keys that is present; adds a diagnostic if there is not exactly one.
fn only(
    fields: &Fields<'_>,
    keys: &[&'static str],
    what: &str,
    findings: &mut Findings<'_>,
) -> Option<&'static str> {
    let there: Vec<_> = keys.iter().filter(|key| fields.has(key)).collect();
    if let [key] = there[..] {
        return Some(key);
    }
    let place = first_line(findings.text, &fields.span);
    let choices = keys.join(", ");
    let message = format!("{what} has one of {choices}, and only one; this has {}", there.len());
    findings.add(Diagnostic::error("no-single-content", &place, message).help(match there[..] {
        [] => "add one: without it there is no content",
        _ => "keep one of them: for more, write more entries",
    }));
    None
}

fn type_of_file(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Option<String> {
    let Some(mime_type) = fields.text("mime_type") else {
        let place = fields.node("file").map_or(&fields.span, |node| &node.span);
        findings.add(
            Diagnostic::error("missing-key", place, "a file needs the key `mime_type`")
                .help("add its type: mime_type: image/png"),
        );
        return None;
    };
    Some(mime_type.to_owned())
}

/// A text whose references may use only the names in `known`.
fn template(
    fields: &Fields<'_>,
    key: &str,
    known: &[&str],
    findings: &mut Findings<'_>,
) -> Option<Template> {
    let node = fields.node(key)?;
    // Parsed only for syntax errors, because other references are allowed here than in tools.
    let Ok(template) = Template::parse(node.as_str()?) else {
        return Scope::default().template(node, findings);
    };
    let mut places = Places::new(node);
    for reference in template.references() {
        let span = places.next(&reference.to_string(), findings.text);
        match reference {
            Reference::Arg(name) if known.contains(&name.as_str()) => {}
            Reference::Arg(name) => {
                let help = did_you_mean(name, known.iter().copied());
                let help = help.unwrap_or_else(|| match known {
                    [] => "there is no declared argument to which it could refer".to_owned(),
                    known => format!("declared: {}", known.join(", ")),
                });
                let message = format!("no argument is called `{name}`");
                findings.add(Diagnostic::error("undeclared-argument", &span, message).help(help));
            }
            other => {
                let message = format!("`{other}` cannot be used here");
                findings.add(Diagnostic::error("not-in-content", &span, message).help(
                    "prompts and resources can use only values from clients: ${args.name}; a \
                     literal `${` \
                     is written `$${`",
                ));
            }
        }
    }
    let mut places = Places::new(node);
    for piece in &template.pieces {
        let Piece::Literal(text) = piece else { continue };
        let certain = forms(text, |name| known.contains(&name)).into_iter();
        for (name, written, _) in certain.filter(|(.., is_certain)| *is_certain) {
            let span = places.next(&written, findings.text);
            let message = format!("`{written}` is not a reference and is not replaced");
            findings.add(
                Diagnostic::warning("unreplaced-reference", &span, message)
                    .help(format!("write ${{args.{name}}}")),
            );
        }
    }
    Some(template)
}

/// The variables of a URI template, each `{name}`; fails with a clause about an invalid one.
fn variables(uri: &str) -> Result<Vec<String>, String> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let letters = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(letters) {
        return Err("an address begins with a scheme: notes://today".to_owned());
    }
    if uri.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("an address cannot contain spaces or control characters".to_owned());
    }
    let mut names: Vec<String> = Vec::new();
    let mut rest = uri;
    while let Some(open) = rest.find(['{', '}']) {
        let after = &rest[open..];
        let name = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let Some((name, behind)) = name else {
            return Err("a brace in this address is not matched".to_owned());
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("`{{{name}}}` is not a variable: write {{name}}"));
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("the variable `{name}` occurs twice in the address"));
        }
        if behind.starts_with('{') {
            return Err("two variables of an address need text between them".to_owned());
        }
        names.push(name.to_owned());
        rest = behind;
    }
    Ok(names)
}

fn suggestions(
    fields: &Fields<'_>,
    known: &[&str],
    findings: &mut Findings<'_>,
) -> BTreeMap<String, Vec<String>> {
    let mut suggest = BTreeMap::new();
    for entry in fields.node("suggest").map(Node::entries).unwrap_or_default() {
        if !known.contains(&entry.key.as_str()) {
            let message = format!("no variable is called `{}`", entry.key);
            let help = did_you_mean(&entry.key, known.iter().copied());
            findings.add(
                Diagnostic::error("undeclared-argument", &entry.key_span, message).maybe_help(help),
            );
        }
        let values: Vec<_> =
            entry.node.items().iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
        if values.is_empty() || values.len() < entry.node.items().len() {
            let message = format!("`{}` expects a list of texts", entry.key);
            findings.add(Diagnostic::error("wrong-type", &entry.node.span, message));
        }
        suggest.insert(entry.key.clone(), values);
    }
    suggest
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_are_plain_names_in_braces() {
        assert_eq!(variables("a://b").unwrap(), Vec::<String>::new());
        assert_eq!(variables("a://{x}/c/{y_2}").unwrap(), ["x", "y_2"]);
        for wrong in [
            "",
            "b",
            "//b",
            "1a://b",
            "a b://c",
            "a:// b",
            "a://{",
            "a://}",
            "a://{}",
            "a://{x}{y}",
            "a://{x}/{x}",
            "a://{+x}",
            "a://{x*}",
        ] {
            assert!(variables(wrong).is_err(), "{wrong}");
        }
    }
}

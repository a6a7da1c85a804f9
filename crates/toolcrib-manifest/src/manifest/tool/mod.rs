//! One tool of a manifest.

pub(crate) mod cases;
pub(crate) mod client;
#[cfg(feature = "cel")]
pub(crate) mod constraints;
pub(crate) mod icons;
pub(crate) mod input_text;
pub(crate) mod kind;
pub(crate) mod limits;
pub(crate) mod policies;
pub(crate) mod references;

use std::sync::Arc;

use toolcrib_tool::{
    Annotations, DESCRIPTION_MAX, Injection, ToolDefinition, ToolDefinitionBuilder, ToolName,
};

use super::schema::{self, bad_pattern};
use super::{Shared, http, keys};
use crate::declaration::{
    ArgvEntry, ContextParameter, Declaration, DeclaredBody, Keep, Needs, OutputFormat, OutputSpec,
    SandboxProfile,
};
use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Node, NodeValue, Style};
use crate::fields::{Fields, wrong_type};
use crate::manifest::program::{sandbox, worker};
use crate::manifest::schema::checked::Checked;
use crate::manifest::tool::cases::{TestContext, origin};
use crate::manifest::tool::limits::Limits;
use crate::manifest::tool::policies::Policies;
use crate::manifest::tool::references::Scope;
use crate::template::{Piece, Template};

/// Reads a tool; `None` if it is invalid.
pub(super) fn read(
    node: &Node,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<Declaration> {
    let fields = Fields::read(node, &keys::TOOL, findings)?;
    let name = exposed_name(&fields, shared, findings);
    let description = description(&fields, findings);

    let mut scope = Scope::default();
    let own_input = client::own_input(&fields, findings);
    let (input, input_given) = read_input(&fields, own_input.as_ref(), &mut scope, findings);
    let context = read_context(&fields, &mut scope, findings);
    let empty_as_absent = fields.texts("empty_as_absent").unwrap_or_default();
    check_declared(&fields, &scope, findings);
    let output_schema = fields.node("output_schema").map(|node| {
        schema::check(node, node.to_value(), false, findings).map(|checked| checked.value)
    });

    let annotations = annotations(&fields, findings);
    let limit_fields =
        fields.node("limits").and_then(|node| Fields::read(node, &keys::LIMITS, findings));
    let limits = limit_fields.as_ref().map(|fields| Limits::read(fields, findings));
    let limits = limits.unwrap_or_default().or(shared.limits);
    let policies = Policies::read(&fields, findings);
    policies.check_approval(&fields, annotations, findings);

    // Read before the body, which reports unused arguments.
    #[cfg(feature = "cel")]
    let constraints =
        crate::manifest::tool::constraints::read(&fields, input.as_ref(), &mut scope, findings);
    #[cfg(not(feature = "cel"))]
    let constraints = Vec::new();
    let around = http::ToolParts {
        file: shared.file,
        input: fields.node("input"),
        context: &context,
        limits,
    };
    let kind = kind::read(&fields, limit_fields.as_ref(), &around, &mut scope, findings);
    if !kind.is_client {
        policies.check_repeats(&fields, annotations, findings);
    }

    let input_is_faulty = match fields.node("input") {
        Some(input) => findings.has_error_within(&input.span, None),
        None => findings.has_error_within(&fields.span, Some("unknown-key")),
    };
    let test_context = TestContext {
        file: shared.file,
        lines: &shared.lines,
        // Arguments cannot be checked against an input that is wrong or has an unknown key.
        input: input.as_ref().filter(|_| !input_is_faulty),
        empty_as_absent: &empty_as_absent,
        sends: fields.has("http"),
    };
    let mut examples = Vec::new();
    for list in ["input_examples", "examples"].iter().filter_map(|key| fields.node(key)) {
        examples.extend(test_context.examples(list, findings));
    }
    let tests =
        fields.node("tests").map(|list| test_context.tests(list, findings)).unwrap_or_default();
    if let Some(DeclaredBody::Worker(_)) = &kind.body {
        worker::check_output(&fields, findings);
    }
    let icons = icons::icons(&fields, findings);
    let output = output(&fields, findings);
    let mut sandbox = sandbox::read(&fields, SandboxProfile::Workspace, findings);
    sandbox.memory = limits.memory();
    let body = kind.body?;
    let name_node = fields.node("name")?;
    let needs = needs(&fields, &body, &scope, findings);

    let mut builder = ToolDefinition::builder(name?)
        .description(description?)
        .annotations(annotations)
        .injections(context.iter().map(injection).collect())
        .empty_as_absent(empty_as_absent)
        .assert_formats(fields.flag("assert_formats").unwrap_or(false))
        .input_examples(examples);
    builder = labelled(builder, &fields, shared);
    if !icons.is_empty() {
        builder = builder.icons(icons);
    }
    if input_given {
        builder = builder.input_schema(input?.value);
    }
    if let Some(schema) = output_schema {
        builder = builder.output_schema(schema?);
    }
    if let Some(timeout) = kind.timeout {
        builder = builder.timeout(timeout);
    }
    builder = governed(builder, &body, limits, policies, shared, annotations);
    match builder.build() {
        Ok(definition) => Some(Declaration {
            definition: Arc::new(definition),
            body,
            sandbox,
            needs,
            output,
            context,
            constraints,
            tests,
            owner: shared.owner.map(str::to_owned),
            origin: origin(shared.file, &shared.lines, &name_node.span),
        }),
        Err(error) => {
            findings.add(Diagnostic::error("bad-definition", &name_node.span, error.to_string()));
            None
        }
    }
}

/// Adds the policies and limits that apply to this kind of tool to a definition.
fn governed(
    builder: ToolDefinitionBuilder,
    body: &DeclaredBody,
    limits: Limits<'_>,
    policies: Policies,
    shared: &Shared<'_>,
    annotations: Annotations,
) -> ToolDefinitionBuilder {
    match body {
        DeclaredBody::Client => policies.apply_to_any(&shared.policies, builder),
        DeclaredBody::Command(_) | DeclaredBody::Http(_) => {
            limits.apply(policies.apply(&shared.policies, annotations, builder))
        }
        DeclaredBody::Worker(_) => {
            limits.or_one_at_once().apply(policies.apply(&shared.policies, annotations, builder))
        }
    }
}

/// Adds a tool's labels and switches to its definition.
fn labelled(
    builder: ToolDefinitionBuilder,
    fields: &Fields<'_>,
    shared: &Shared<'_>,
) -> ToolDefinitionBuilder {
    let mut builder = builder
        .tags(tags(fields, shared))
        .parallel(fields.flag("parallel").unwrap_or(true))
        .hidden(fields.flag("hidden").unwrap_or(false))
        .final_output(fields.flag("final_output").unwrap_or(false))
        .terminal(fields.flag("terminal").unwrap_or(false));
    if let Some(title) = fields.text("title") {
        builder = builder.title(title);
    }
    let shared_category = shared.defaults.as_ref().and_then(|defaults| defaults.text("category"));
    if let Some(category) = fields.text("category").or(shared_category) {
        builder = builder.category(category);
    }
    if let Some(version) = fields.text("version") {
        builder = builder.version(version);
    }
    builder
}

/// The exposed name: the namespace and the tool's name, checked together.
fn exposed_name(
    fields: &Fields<'_>,
    shared: &Shared<'_>,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let (node, own) = fields.node("name").zip(fields.text("name"))?;
    if let Err(error) = ToolName::new(own) {
        let fixed: String = own
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(ToolName::MAX_LEN)
            .collect();
        let help = (!own.is_empty()).then(|| format!("for example {fixed}"));
        findings.add(Diagnostic::error("bad-name", &node.span, error.to_string()).maybe_help(help));
        return None;
    }
    let Some(namespace) = shared.namespace else { return Some(own.to_owned()) };
    let exposed = format!("{namespace}_{own}");
    if exposed.len() > ToolName::MAX_LEN {
        let message = format!(
            "`{exposed}` has {} characters; a name has at most {}, namespace included",
            exposed.len(),
            ToolName::MAX_LEN
        );
        let diagnostic = Diagnostic::error("name-too-long", &node.span, message);
        findings.add(diagnostic.help("shorten the name or the namespace"));
        return None;
    }
    Some(exposed)
}

/// The description, if it is valid.
pub(super) fn description<'n>(fields: &Fields<'n>, findings: &mut Findings<'_>) -> Option<&'n str> {
    let (entry, text) = fields.entry("description").zip(fields.text("description"))?;
    let problem = if text.trim().is_empty() {
        "the description is empty"
    } else if text.len() > DESCRIPTION_MAX {
        "the description is longer than 16 KiB"
    } else {
        return Some(text.trim());
    };
    findings.add(
        Diagnostic::error("bad-description", &entry.node.visible_span(Some(entry)), problem).help(
            "say in a few sentences what the tool does and when to use it: models choose by it",
        ),
    );
    None
}

/// The checked schema of the arguments, and whether the tool has one. A tool without a schema has
/// no arguments.
fn read_input(
    fields: &Fields<'_>,
    own: Option<&Node>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> (Option<Checked>, bool) {
    let given = own.or(fields.node("input"));
    let nothing = Node {
        value: NodeValue::Mapping(Vec::new()),
        span: fields.span.clone(),
        style: Style::Explicit,
    };
    let node = given.unwrap_or(&nothing);
    scope.declare(node);
    if given.is_none() {
        // A misspelt `input` is reported once, not again at every reference.
        let meant = fields.unknown().find(|entry| is_input(&entry.key, &entry.node));
        if let Some(entry) = meant {
            scope.declare(&entry.node);
            scope.unclear = true;
            // Checks that depend on types need a valid schema.
            for argument in scope.arguments.values_mut() {
                argument.list = None;
            }
        }
    }
    let needed = given.is_some()
        || ["tests", "examples", "input_examples"].iter().any(|key| fields.node(key).is_some());
    let assert_formats = fields.flag("assert_formats").unwrap_or(false);
    let checked = needed.then(|| schema::check_input(node, assert_formats, findings)).flatten();
    (checked, given.is_some())
}

/// Whether an unknown key is a misspelt `input`.
fn is_input(key: &str, node: &Node) -> bool {
    let known = ["args", "arguments", "inputSchema", "input_schema", "parameters", "params"];
    let is_schema = node.entry("properties").is_some();
    is_schema && (known.contains(&key) || did_you_mean(key, ["input"]).is_some())
}

/// `context`: context values and their checks.
fn read_context(
    fields: &Fields<'_>,
    scope: &mut Scope,
    findings: &mut Findings<'_>,
) -> Vec<ContextParameter> {
    let mut parameters = Vec::new();
    for entry in fields.node("context").map(Node::entries).unwrap_or_default() {
        let name = entry.key.as_str();
        scope.context.insert(name.to_owned());
        if let Some(argument) = scope.arguments.get(name) {
            let message = format!("`{name}` is both an argument and a context value");
            findings.add(
                Diagnostic::error("shadowed-argument", &entry.key_span, message)
                    .label("the host sets it here")
                    .help("remove one: a model's value would never be used")
                    .also(&argument.span, "a model sets it here"),
            );
        }
        let NodeValue::Mapping(keys) = &entry.node.value else {
            let expected = format!("`{name}` expects a mapping");
            findings.add(
                wrong_type(&entry.node, Some(entry), &expected)
                    .help(format!("write {name}: {{from: ctx.{name}}}")),
            );
            continue;
        };
        let (own, schema): (Vec<_>, Vec<_>) =
            keys.iter().cloned().partition(|key| ["from", "required"].contains(&key.key.as_str()));
        let part = |entries| Node {
            value: NodeValue::Mapping(entries),
            span: entry.node.span.clone(),
            style: Style::Explicit,
        };
        let own = part(own);
        let required = own.entry("required").map(|required| {
            if let NodeValue::Bool(value) = required.node.value {
                return value;
            }
            let expected = "`required` expects true or false";
            findings.add(wrong_type(&required.node, Some(required), expected));
            true
        });
        let Some(key) = context_key(&own, &entry.key_span, name, findings) else { continue };
        let schema = part(schema);
        let value = (!schema.entries().is_empty()).then(|| schema.to_value());
        if let Some(value) = &value {
            schema::check(&schema, value.clone(), false, findings);
        }
        parameters.push(ContextParameter {
            name: name.to_owned(),
            key,
            required: required.unwrap_or(true),
            schema: value,
        });
    }
    parameters
}

/// The key of the host's context after `from: ctx.`.
fn context_key(
    own: &Node,
    place: &Span,
    name: &str,
    findings: &mut Findings<'_>,
) -> Option<String> {
    let help = format!("write from: ctx.{name}");
    let Some(from) = own.entry("from") else {
        let message = format!("`{name}` does not say where its value comes from");
        findings.add(Diagnostic::error("missing-key", place, message).help(help));
        return None;
    };
    let written = from.node.as_str();
    let key = written.and_then(|text| text.strip_prefix("ctx.")).filter(|key| !key.is_empty());
    if key.is_none() {
        let message =
            format!("`from` expects a key of the host's context, found {}", from.node.describe());
        let place = from.node.visible_span(Some(from));
        findings.add(Diagnostic::error("bad-reference", &place, message).help(help));
    }
    key.map(str::to_owned)
}

fn injection(parameter: &ContextParameter) -> Injection {
    let injection = Injection::new(parameter.name.as_str(), parameter.key.as_str());
    if parameter.required { injection } else { injection.optional() }
}

/// Checks that `empty_as_absent` names declared arguments.
fn check_declared(fields: &Fields<'_>, scope: &Scope, findings: &mut Findings<'_>) {
    for item in fields.node("empty_as_absent").map(Node::items).unwrap_or_default() {
        let Some(name) = item.as_str() else { continue };
        if !scope.arguments.contains_key(name) {
            let message = format!("no argument is called `{name}`");
            let help = did_you_mean(name, scope.arguments.keys().map(String::as_str));
            findings.add(
                Diagnostic::error("undeclared-argument", &item.span, message).maybe_help(help),
            );
        }
    }
}

fn annotations(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Annotations {
    let unknown = Annotations::default();
    let Some(given) = fields
        .node("annotations")
        .and_then(|node| Fields::read(node, &keys::ANNOTATIONS, findings))
    else {
        return unknown;
    };
    Annotations {
        read_only: given.flag("read_only").unwrap_or(unknown.read_only),
        destructive: given.flag("destructive").unwrap_or(unknown.destructive),
        idempotent: given.flag("idempotent").unwrap_or(unknown.idempotent),
        open_world: given.flag("open_world").unwrap_or(unknown.open_world),
    }
}

/// The tags of the file and of the tool, each once.
pub(super) fn tags(fields: &Fields<'_>, shared: &Shared<'_>) -> Vec<String> {
    let mut tags =
        shared.defaults.as_ref().and_then(|fields| fields.texts("tags")).unwrap_or_default();
    for tag in fields.texts("tags").unwrap_or_default() {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// The needs in `needs`, and those that the command implies.
fn needs(
    fields: &Fields<'_>,
    body: &DeclaredBody,
    scope: &Scope,
    findings: &mut Findings<'_>,
) -> Needs {
    let given = fields.node("needs").and_then(|node| Fields::read(node, &keys::NEEDS, findings));
    let named = |key: &str| given.as_ref().and_then(|fields| fields.texts(key)).unwrap_or_default();
    let mut needs = Needs { bins: named("bins"), env: named("env"), secrets: named("secrets") };
    let add = |list: &mut Vec<String>, name: &str| {
        if !list.iter().any(|known| known == name) {
            list.push(name.to_owned());
        }
    };
    if let DeclaredBody::Worker(worker) = body
        && let Some(program) = worker.argv.first()
        && !program.contains('/')
    {
        add(&mut needs.bins, program);
    }
    if let DeclaredBody::Command(command) = body
        && command.script.is_none()
        && let Some(ArgvEntry::One(Template { pieces })) = command.argv.first()
        && let [Piece::Literal(program)] = pieces.as_slice()
        && !program.contains('/')
    {
        add(&mut needs.bins, program);
    }
    scope.env.iter().for_each(|name| add(&mut needs.env, name));
    scope.secrets.iter().for_each(|name| add(&mut needs.secrets, name));
    needs
}

/// How output becomes a result. With an `output_schema`, a response has to be data.
fn output(fields: &Fields<'_>, findings: &mut Findings<'_>) -> OutputSpec {
    let given = fields.node("output").and_then(|node| Fields::read(node, &keys::OUTPUT, findings));
    let text = |key: &str| given.as_ref().and_then(|fields| fields.text(key));
    let redact = given.as_ref().and_then(|fields| fields.node("redact"));
    let progress = fields.node("progress");
    for item in [redact, progress].into_iter().flatten().flat_map(Node::items) {
        if let Some(pattern) = item.as_str()
            && regex::Regex::new(pattern).is_err()
        {
            findings.add(bad_pattern(pattern, &item.span));
        }
    }
    check_progress(fields, findings);
    OutputSpec {
        format: match text("format") {
            Some("json") => OutputFormat::Json,
            Some("lines") => OutputFormat::Lines,
            Some("auto") => OutputFormat::Auto,
            None if fields.has("http") && fields.has("output_schema") => OutputFormat::Json,
            None if fields.has("http") => OutputFormat::Auto,
            _ => OutputFormat::Text,
        },
        keep: match text("keep") {
            Some("head") => Keep::Head,
            Some("tail") => Keep::Tail,
            _ => Keep::Both,
        },
        redact: given.as_ref().and_then(|fields| fields.texts("redact")).unwrap_or_default(),
        progress: fields.texts("progress").unwrap_or_default(),
    }
}

/// Checks that `progress` patterns have a group for the number, and that the tool runs a program.
fn check_progress(fields: &Fields<'_>, findings: &mut Findings<'_>) {
    let Some(progress) = fields.node("progress") else { return };
    let is_printed = fields
        .node("run")
        .is_some_and(|run| run.entries().iter().all(|entry| entry.key != "worker"));
    if !is_printed {
        findings.add(
            Diagnostic::error(
                "not-for-this-run",
                &progress.span,
                "`progress` reads lines that a program prints, and this tool has no `run: {argv: …}` or `script`",
            )
            .help("remove it"),
        );
    }
    for item in progress.items() {
        let compiled = item.as_str().and_then(|pattern| regex::Regex::new(pattern).ok());
        if compiled.is_some_and(|pattern| pattern.captures_len() < 2) {
            findings.add(
                Diagnostic::error("bad-pattern", &item.span, "this pattern has no group for the number")
                    .help("put the number in parentheses: `progress: ['(\\d+)%']`, or with a total `['(\\d+)/(\\d+)']`"),
            );
        }
    }
}

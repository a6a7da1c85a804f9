//! Manifests from any text: accepted completely or not at all, with every problem at a position in the text.

use std::collections::HashSet;

use jsonschema::PatternOptions;
use serde_json::Value;
use toolcrib_manifest::declaration::{
    ArgvEntry, Declaration, DeclaredBody, HttpAuth, HttpSpec, StandardInput, UrlOrigin,
};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_manifest::{Diagnostic, Loaded, load_str};

/// Any bytes as a manifest, read as YAML and as TOML. Promises:
///
/// - An error means that there are no declarations.
/// - Every position lies inside the text, on character boundaries; problems are in the order of the text; and each can
///   be rendered for people and for programs.
/// - Declarations are usable: names differ, schemas compile, and every argument that a command refers to is declared;
///   nothing is cached, retried or without a time limit that must not be.
/// - The same text always gives the same result, and a byte order mark changes nothing.
pub fn load_manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for file in ["fuzzed.yaml", "fuzzed.toml"] {
        let loaded = load_str(file, text);
        if loaded.has_errors() {
            assert!(loaded.declarations.is_empty(), "a file with errors declares tools");
        }
        assert_diagnostics(file, text, &loaded.diagnostics);
        assert_declarations(&loaded.declarations);

        assert_alike(&loaded, &load_str(file, text));
        if !text.starts_with('\u{feff}') {
            assert_alike(&loaded, &load_str(file, &format!("\u{feff}{text}")));
        }
    }
}

fn assert_diagnostics(file: &str, text: &str, diagnostics: &[Diagnostic]) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.matches('\n').count() + 1;
    for found in diagnostics {
        let secondary = found.secondary.iter().map(|(span, _)| span);
        for span in std::iter::once(&found.span).chain(secondary) {
            assert!(text.get(span.clone()).is_some(), "{found:?} lies outside of the text");
        }
        let (line, column) = found.position(text);
        assert!((1..=lines).contains(&line), "{found:?} is on line {line} of {lines}");
        assert!(column >= 1 && !found.message.is_empty() && !found.code.is_empty());

        let shown = found.render(file, text, false);
        assert!(shown.contains(found.code), "{found:?} is shown as\n{shown}");
        assert!(!shown.contains('\x1b'), "control characters of the file reach the terminal");
        assert_eq!(found.to_value(file, text)["line"], line);
    }
    assert!(diagnostics.is_sorted_by_key(|found| found.span.start));
}

fn assert_declarations(declarations: &[Declaration]) {
    let mut names = HashSet::new();
    for declaration in declarations {
        let definition = &declaration.definition;
        assert!(names.insert(definition.name()), "two tools are called {}", definition.name());
        assert!(declaration.origin.line >= 1);
        let schemas = [Some(definition.input_schema()), definition.output_schema()];
        for schema in schemas.into_iter().flatten() {
            let compiled = jsonschema::options()
                .with_pattern_options(PatternOptions::regex())
                .offline()
                .build(schema);
            assert!(compiled.is_ok(), "{schema} is declared and does not compile");
        }
        assert_promises(declaration);
        let properties = definition.input_schema().get("properties");
        for argument in arguments_of(declaration) {
            let declared = properties.and_then(|properties| properties.get(argument)).is_some();
            assert!(declared, "`{argument}` is used and not declared");
        }
    }
}

/// The policies of a tool's calls are allowed for the tool.
fn assert_promises(declaration: &Declaration) {
    let definition = &declaration.definition;
    let annotations = definition.annotations();
    let repeatable = annotations.idempotent;
    assert!(definition.cache().is_none() || (annotations.read_only && repeatable));
    assert!(definition.retry().is_none_or(|retry| repeatable && retry.max() > 0));
    assert_ne!(definition.max_concurrent(), Some(0));
    let here = !matches!(declaration.body, DeclaredBody::Client);
    assert!(!here || definition.timeout().is_some(), "{} may run for ever", definition.name());
    match &declaration.body {
        DeclaredBody::Command(command) => {
            let retried = |code| command.retry_exit.contains(code);
            assert!(!command.ok_exit.iter().any(retried), "a success is tried again");
        }
        DeclaredBody::Http(http) => assert_server(http),
        DeclaredBody::Worker(worker) => {
            let of_a_call =
                |found: &Reference| matches!(found, Reference::Arg(_) | Reference::Ctx(_));
            let mut references = worker.env.values().flat_map(Template::references);
            assert!(!references.any(of_a_call), "a worker depends on one call");
            assert!(!worker.argv.is_empty() && !worker.idle.is_zero());
            assert!(definition.max_concurrent().is_some(), "it has one call at a time by default");
        }
        DeclaredBody::Client => {
            assert!(definition.cache().is_none() && definition.retry().is_none());
            assert!(definition.rate().is_none() && definition.max_concurrent().is_none());
        }
    }
}

/// The server of a request is unambiguous, and only the author's credentials are sent.
fn assert_server(http: &HttpSpec) {
    match &http.url.origin {
        UrlOrigin::Literal(origin) => {
            let (scheme, host) = origin.split_once("://").unwrap_or_default();
            assert!(["http", "https"].contains(&scheme) && !host.is_empty(), "no server: {origin}");
            assert!(!host.contains(['/', '?', '#', '@', '\\']), "more than a server: {origin}");
            let Some(Piece::Literal(path)) = http.url.path.pieces.first() else {
                panic!("{origin} has no path");
            };
            assert!(path.starts_with('/'), "{path} is joined to {origin}");
        }
        UrlOrigin::Secret(reference) => {
            assert!(matches!(reference, Reference::Secret(_)), "{reference} chooses the server");
            assert!(http.url.path.pieces.is_empty(), "a path is joined to {reference}");
        }
    }
    let sent = match &http.auth {
        Some(HttpAuth::Bearer(value) | HttpAuth::Header { value, .. }) => vec![value],
        Some(HttpAuth::Basic { user, password }) => vec![user, password],
        None => Vec::new(),
    };
    let chosen = |found: &Reference| matches!(found, Reference::Arg(_));
    assert!(!sent.into_iter().flat_map(Template::references).any(chosen), "a model chooses");
}

/// Every argument to which the command or the request of a tool refers.
fn arguments_of(declaration: &Declaration) -> HashSet<&str> {
    let mut arguments = HashSet::new();
    arguments
        .extend(declaration.http().into_iter().flat_map(HttpSpec::references).filter_map(name_of));
    let Some(command) = declaration.command() else { return arguments };
    if command.stdin == Some(StandardInput::Arguments) {
        let properties = declaration.definition.input_schema().get("properties");
        let names = properties.and_then(Value::as_object).into_iter().flat_map(|all| all.keys());
        arguments.extend(names.map(String::as_str));
    }
    let stdin = command.stdin.iter().filter_map(StandardInput::template);
    let mut templates: Vec<&Template> = command.env.values().chain(stdin).collect();
    for entry in &command.argv {
        match entry {
            ArgvEntry::One(template) => templates.push(template),
            ArgvEntry::If { condition, then } => {
                arguments.insert(condition.as_str());
                templates.extend(then);
            }
            ArgvEntry::Each { argument } => {
                arguments.insert(argument.as_str());
            }
        }
    }
    let references = templates.into_iter().flat_map(Template::references);
    arguments.extend(references.filter_map(name_of));
    arguments
}

fn name_of(reference: &Reference) -> Option<&str> {
    match reference {
        Reference::Arg(name) => Some(name),
        _ => None,
    }
}

fn assert_alike(one: &Loaded, other: &Loaded) {
    assert_eq!(one.diagnostics, other.diagnostics);
    let shown = |loaded: &Loaded| format!("{:?}", loaded.declarations);
    assert_eq!(shown(one), shown(other));
}

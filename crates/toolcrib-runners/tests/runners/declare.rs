//! Declarations built by hand, with templates in the manifest's notation.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_manifest::declaration::{
    ArgvEntry, CommandSpec, ContextParameter, Declaration, DeclaredBody, Keep, Needs, OutputFormat,
    OutputSpec, SandboxProfile, SandboxSpec,
};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_runners::{CommandRunner, RunnerHost};
use toolcrib_tool::{
    Arguments, CallContext, ContextValues, Origin, Tool, ToolDefinition, ToolError, ToolOutcome,
    ToolOutput,
};

/// Arguments as a call gets them.
pub(crate) fn given(arguments: &Value) -> Arguments {
    Arguments::from_validated(arguments.to_string())
}

/// A declaration with this argument vector and untyped arguments.
pub(crate) fn command<const N: usize>(argv: [ArgvEntry; N]) -> Declaration {
    let definition = ToolDefinition::builder("demo")
        .description("A demo.")
        .input_schema(json!({"properties": {
            "n": {"type": "integer"},
            "list": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "number"}},
            "raw": {"type": "string", "x-allow-control": true},
            "raws": {"type": "array", "items": {"type": "string", "x-allow-control": true}},
        }}))
        .build()
        .unwrap();
    Declaration {
        definition: Arc::new(definition),
        body: DeclaredBody::Command(CommandSpec {
            argv: Vec::from(argv),
            script: None,
            files: BTreeMap::new(),
            stdin: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            ok_exit: vec![0],
            retry_exit: vec![75],
            cwd: None,
            unsafe_argv: None,
            capture_bytes: 64 * 1024,
        }),
        sandbox: SandboxSpec::of(SandboxProfile::Workspace),
        needs: Needs::default(),
        output: OutputSpec {
            format: OutputFormat::Text,
            keep: Keep::Both,
            redact: Vec::new(),
            progress: Vec::new(),
        },
        context: Vec::new(),
        constraints: Vec::new(),
        tests: Vec::new(),
        owner: None,
        origin: Origin { file: "tools.d/demo.yaml".into(), line: 3, column: 11 },
    }
}

/// The command, for changes.
pub(crate) fn spec(declaration: &mut Declaration) -> &mut CommandSpec {
    match &mut declaration.body {
        DeclaredBody::Command(command) => command,
        other => panic!("no command: {other:?}"),
    }
}

/// A shell script as the command.
pub(crate) fn sh(script: &str) -> Declaration {
    let literal =
        |text: &str| ArgvEntry::One(Template { pieces: vec![Piece::Literal(text.to_owned())] });
    command([literal("sh"), literal("-c"), literal(script)])
}

/// `a ${args.b} c` as a template.
pub(crate) fn template(text: &str) -> Template {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once("${") {
        let (reference, after) = after.split_once('}').unwrap();
        let (kind, name) = reference.split_once('.').unwrap();
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.to_owned()));
        }
        pieces.push(Piece::Reference(match kind {
            "args" => Reference::Arg(name.to_owned()),
            "ctx" => Reference::Ctx(name.to_owned()),
            "env" => Reference::Env(name.to_owned()),
            "secret" => Reference::Secret(name.to_owned()),
            other => panic!("no reference: {other}"),
        }));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Template { pieces }
}

/// One entry of an argument vector.
pub(crate) fn one(text: &str) -> ArgvEntry {
    ArgvEntry::One(template(text))
}

/// `{if: condition, then: […]}`.
pub(crate) fn when<const N: usize>(condition: &str, then: [&str; N]) -> ArgvEntry {
    ArgvEntry::If { condition: condition.to_owned(), then: then.map(template).to_vec() }
}

/// `{each: argument}`.
pub(crate) fn each(argument: &str) -> ArgvEntry {
    ArgvEntry::Each { argument: argument.to_owned() }
}

/// A required context parameter.
pub(crate) fn parameter(name: &str, key: &str, schema: Option<Value>) -> ContextParameter {
    ContextParameter { name: name.to_owned(), key: key.to_owned(), required: true, schema }
}

/// A call's context with these values.
pub(crate) fn context<const N: usize>(
    declaration: &Declaration,
    values: [(&str, Value); N],
) -> CallContext {
    CallContext::builder("call_1", Arc::clone(&declaration.definition))
        .values(ContextValues::from_iter(values))
        .build()
}

/// A runner whose workspace is the system's directory for temporary files.
pub(crate) fn runner(declaration: &Declaration) -> CommandRunner {
    CommandRunner::new(declaration, &RunnerHost::new(std::env::temp_dir()))
}

/// Calls the tool and returns its output.
pub(crate) async fn call(
    declaration: &Declaration,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    call_with(declaration, arguments, &context(declaration, [])).await
}

/// Calls the tool in a context.
pub(crate) async fn call_with(
    declaration: &Declaration,
    arguments: Value,
    cx: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let arguments = Arguments::from_validated(arguments.to_string());
    match runner(declaration).call(arguments, cx).await? {
        ToolOutcome::Done(output) => Ok(output),
        other => panic!("not done: {other:?}"),
    }
}

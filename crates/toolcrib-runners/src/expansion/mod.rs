//! Expands templates and values into a command line; a value can never become anything else.

pub(crate) mod context;
pub(crate) mod text;
pub(crate) mod values;

use std::fmt;
use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use toolcrib_json::Kind;
use toolcrib_manifest::declaration::{ArgvEntry, CommandSpec, Declaration, StandardInput};
use toolcrib_manifest::is_dangerous_env;
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_tool::{Arguments, CallContext, ToolError};

use crate::RunnerHost;
use crate::command::script::OWN_PATH;
use crate::expansion::text::{Destination, json_of, text_of};
use crate::expansion::values::{CallValues, unavailable};

/// The kernel's limit for one argument or variable, including the final NUL.
const ARGUMENT_MAX: usize = 128 * 1024;
/// The limit for all arguments of a call. The kernel takes about 2 MiB, including the environment.
const ARGUMENTS_MAX: usize = 1024 * 1024;

/// The server's values for references.
pub trait ServerValues {
    /// A variable of the server's environment, or why a call cannot have it, as a clause after
    /// "the tool".
    fn env(&self, name: &str) -> Result<String, String>;

    /// Fails if a program must not get this variable of the server, with a clause after "the tool".
    fn may_pass(&self, name: &str) -> Result<(), String> {
        let _ = name;
        Ok(())
    }

    /// A secret, or why there is none, as a clause after "the tool".
    fn secret(&self, name: &str) -> Result<SecretString, String>;
}

/// The environment of this process, without the variables that hold secrets, and the host's secrets.
impl ServerValues for RunnerHost {
    fn env(&self, name: &str) -> Result<String, String> {
        self.may_pass(name)?;
        std::env::var(name).map_err(|_| {
            format!("needs the environment variable `{name}`, which the server does not have")
        })
    }

    fn may_pass(&self, name: &str) -> Result<(), String> {
        match self.secrets.held_in_variable(name) {
            None => Ok(()),
            Some(secret) => Err(format!(
                "uses the variable `{name}`, which holds the secret `{secret}`: it has to be used \
                 as `${{secret.{secret}}}`"
            )),
        }
    }

    fn secret(&self, name: &str) -> Result<SecretString, String> {
        self.secrets.get(name).map_err(|missing| missing.to_string())
    }
}

/// What a call would start. References in it are not expanded again.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// The program, as the declaration names it.
    pub program: String,
    /// Its arguments, without the program's name.
    pub args: Vec<String>,
    /// Variables set for it, in byte order of their names.
    pub env: Vec<(String, String)>,
    /// Names of server variables that are passed through.
    pub pass_env: Vec<String>,
    /// What it reads on standard input.
    pub stdin: Option<String>,
    /// The declared working directory.
    pub cwd: Option<PathBuf>,
}

impl Invocation {
    /// Program and arguments, as one vector.
    pub fn argv(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.program.as_str()).chain(self.args.iter().map(String::as_str))
    }
}

/// Shows only the names of variables and the length of standard input, because both may contain secrets.
impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Invocation")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("pass_env", &self.pass_env)
            .field("stdin_bytes", &self.stdin.as_ref().map(String::len))
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// Expands a declared command for a call; starts nothing.
///
/// `arguments` is the validated object; `server` supplies variables and secrets of the server. Each entry of the
/// declared vector becomes exactly one argument. It is omitted if it refers to an optional argument (or optional
/// context value) that is absent or null. A list for `each` becomes one argument for each item.
///
/// Fails with kind
/// - `invalid_args` if a value holds NUL, a control character its schema does not allow
///   (`x-allow-control: true`), begins with `-` where a program would take it for an option (unless
///   its schema lists it in an `enum` or `const`), or is too long for the system;
/// - `missing_context` or `unavailable` if a value of the host or the server is missing;
/// - `denied` if an argument would set a variable that can take over the program, or if a value of the host breaks the
///   rules for arguments.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use toolcrib_manifest::declaration::*;
/// # use toolcrib_manifest::template::*;
/// # use toolcrib_tool::*;
/// # let definition = std::sync::Arc::new(ToolDefinition::builder("count").description("Count.").build()?);
/// # let literal = |text: &str| Template { pieces: vec![Piece::Literal(text.into())] };
/// # let path = Template { pieces: vec![Piece::Reference(Reference::Arg("path".into()))] };
/// # let argv = vec![literal("wc"), literal("--"), path].into_iter().map(ArgvEntry::One).collect();
/// # let command = CommandSpec { argv, script: None, files: BTreeMap::new(), stdin: None, env: BTreeMap::new(), pass_env: vec![], ok_exit: vec![0], retry_exit: vec![75], cwd: None, unsafe_argv: None, capture_bytes: 65536 };
/// # let output = OutputSpec { format: OutputFormat::Text, keep: Keep::Both, redact: vec![], progress: vec![] };
/// # let origin = Origin { file: "count.yaml".into(), line: 1, column: 1 };
/// # let declaration = Declaration { definition: definition.clone(), body: DeclaredBody::Command(command), sandbox: SandboxSpec::of(SandboxProfile::Workspace), needs: Needs::default(), output, context: vec![], constraints: vec![], tests: vec![], owner: None, origin };
/// // argv: [wc, "--", "${args.path}"]
/// let cx = CallContext::builder("call_1", definition).build();
/// let arguments = Arguments::from_validated(r#"{"path": "-rf; ls"}"#.to_owned());
/// let host = toolcrib_runners::RunnerHost::new("/");
/// let invocation = toolcrib_runners::expand(&declaration, &arguments, &cx, &host).unwrap();
/// assert_eq!(invocation.argv().collect::<Vec<_>>(), ["wc", "--", "-rf; ls"]);
/// # Ok::<(), DefinitionError>(())
/// ```
pub fn expand(
    declaration: &Declaration,
    arguments: &Arguments,
    cx: &CallContext,
    server: &dyn ServerValues,
) -> Result<Invocation, ToolError> {
    let Some(command) = declaration.command() else {
        return Err(ToolError::unavailable("this tool starts no program for a call"));
    };
    let values = CallValues { declaration, arguments: arguments.tape()?.root(), cx, server };
    let expansion = Expansion { command, values };
    let (program, args) = expansion.argv(&command.argv)?;
    let stdin = match &command.stdin {
        // JSON escapes control characters, so that no value can end or split the text.
        Some(StandardInput::Arguments) => Some(json_of(values.arguments)),
        Some(StandardInput::Text(template)) => {
            expansion.template(template, Destination::Stream)?.map(|filled| filled.text)
        }
        None => None,
    };
    for variable in &command.pass_env {
        may_pass(server, variable)?;
    }
    Ok(Invocation {
        program,
        args,
        env: expansion.variables()?,
        pass_env: command.pass_env.clone(),
        stdin,
        cwd: command.cwd.clone(),
    })
}

/// Fails if a program must not get this variable of the server.
pub(crate) fn may_pass(server: &dyn ServerValues, variable: &str) -> Result<(), ToolError> {
    server.may_pass(variable).map_err(|reason| unavailable(&reason))
}

/// Expands a template with the server's values only, for settings that outlive a call.
pub(crate) fn expand_without_call(
    template: &Template,
    server: &dyn ServerValues,
) -> Result<String, ToolError> {
    let mut text = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Reference(Reference::Env(name)) => {
                text.push_str(&server.env(name).map_err(|reason| unavailable(&reason))?);
            }
            Piece::Reference(Reference::Secret(name)) => {
                let secret = server.secret(name).map_err(|reason| unavailable(&reason))?;
                text.push_str(secret.expose_secret());
            }
            Piece::Reference(Reference::Arg(_) | Reference::Ctx(_)) => {
                return Err(broken("uses a value of a call in a setting that outlives the call"));
            }
        }
    }
    Ok(text)
}

/// The inputs of one expansion.
struct Expansion<'a> {
    command: &'a CommandSpec,
    values: CallValues<'a>,
}

/// A template with its values filled in.
struct Filled<'a> {
    text: String,
    /// The last reference before the first character of the text; references with empty values count.
    first: Option<&'a Reference>,
}

/// An argument vector being built.
#[derive(Default)]
struct ArgumentVector {
    entries: Vec<String>,
    bytes: usize,
    /// Whether the author wrote `--`: programs take nothing after it for an option.
    options_ended: bool,
}

impl ArgumentVector {
    /// Adds one argument; `from` names the call's argument that the text comes from.
    fn push(&mut self, text: String, from: Option<&str>) -> Result<(), ToolError> {
        self.bytes += text.len() + 1;
        if text.len() >= ARGUMENT_MAX {
            return Err(too_long(from, "one argument of a program may have at most 128 KiB"));
        }
        if self.bytes > ARGUMENTS_MAX {
            return Err(too_long(from, "all arguments of a program may have at most 1 MiB"));
        }
        self.entries.push(text);
        Ok(())
    }
}

impl Expansion<'_> {
    fn argv(&self, entries: &[ArgvEntry]) -> Result<(String, Vec<String>), ToolError> {
        let Some((ArgvEntry::One(program), rest)) = entries.split_first() else {
            return Err(broken("names no program"));
        };
        let [Piece::Literal(program)] = program.pieces.as_slice() else {
            return Err(broken("lets a value choose the program"));
        };
        let mut vector = ArgumentVector::default();
        for entry in rest {
            match entry {
                ArgvEntry::One(template) => self.push(&mut vector, template)?,
                ArgvEntry::If { condition, then } => {
                    if self
                        .values
                        .argument(condition)
                        .is_some_and(|value| value.kind() != Kind::False)
                    {
                        for template in then {
                            self.push(&mut vector, template)?;
                        }
                    }
                }
                ArgvEntry::Each { argument } => self.push_each(&mut vector, argument)?,
            }
        }
        Ok((program.clone(), vector.entries))
    }

    /// Adds the one argument of a template, or none.
    fn push(&self, vector: &mut ArgumentVector, template: &Template) -> Result<(), ToolError> {
        let Some(filled) = self.template(template, Destination::Line)? else { return Ok(()) };
        if !vector.options_ended {
            match filled.first {
                Some(Reference::Arg(name)) => {
                    // A second value after the first means that the first is not the whole text.
                    let alone = template.references().count() == 1;
                    let number = alone
                        && self.values.argument(name).is_some_and(|value| value.kind().is_number());
                    if !(alone && self.values.property(name).is_some_and(is_listed)) {
                        self.refuse_option(name, &filled.text, number)?;
                    }
                }
                Some(Reference::Ctx(name)) if filled.text.starts_with('-') => {
                    return Err(ToolError::denied(format!(
                        "the host's value for `{name}` begins with \"-\", so that the program \
                         would take it for an option"
                    )));
                }
                _ => {}
            }
        }
        let literal = template.references().next().is_none();
        vector.options_ended |= literal && filled.text == "--";
        vector.push(filled.text, template.references().find_map(argument_name))
    }

    /// Adds one argument for each item of a list.
    fn push_each(&self, vector: &mut ArgumentVector, name: &str) -> Result<(), ToolError> {
        let Some(value) = self.values.argument(name) else { return Ok(()) };
        // A value that is not a list counts as a list with one item.
        let one = (value.kind() != Kind::Array).then_some(value);
        let items = value.items().chain(one);
        let property = self.values.property(name);
        let listed = property.and_then(|list| list.get("items")).is_some_and(is_listed);
        for item in items.filter(|item| item.kind() != Kind::Null) {
            let text = text_of(item).into_owned();
            self.values.refuse_control(name, &text, Destination::Line)?;
            if !vector.options_ended && !listed {
                self.refuse_option(name, &text, item.kind().is_number())?;
            }
            vector.push(text, Some(name))?;
        }
        Ok(())
    }

    fn variables(&self) -> Result<Vec<(String, String)>, ToolError> {
        let mut variables = Vec::new();
        if let Some(script) = &self.command.script {
            let path = std::path::absolute(&script.path).unwrap_or_else(|_| script.path.clone());
            variables.push((OWN_PATH.to_owned(), path.to_string_lossy().into_owned()));
        }
        for (name, template) in &self.command.env {
            // Values of the host are allowed here, because the operator set them.
            let steered = template.references().any(|found| matches!(found, Reference::Arg(_)));
            if steered && is_dangerous_env(name) {
                return Err(ToolError::denied(format!(
                    "the variable `{name}` can take over the program: no argument may set it"
                ))
                .with_hint("The tool's declaration must be changed: tell the user."));
            }
            let Some(filled) = self.template(template, Destination::Line)? else { continue };
            if name.len() + filled.text.len() + 2 > ARGUMENT_MAX {
                let from = template.references().find_map(argument_name);
                return Err(too_long(from, "a variable may have at most 128 KiB"));
            }
            variables.push((name.clone(), filled.text));
        }
        Ok(variables)
    }

    /// Fills in the values. `None` if an optional value is absent.
    fn template<'t>(
        &self,
        template: &'t Template,
        destination: Destination,
    ) -> Result<Option<Filled<'t>>, ToolError> {
        let mut filled = Filled { text: String::new(), first: None };
        for piece in &template.pieces {
            match piece {
                Piece::Literal(literal) => filled.text.push_str(literal),
                Piece::Reference(reference) => {
                    let Some(value) = self.values.text(reference, destination)? else {
                        return Ok(None);
                    };
                    if filled.text.is_empty() {
                        filled.first = Some(reference);
                    }
                    filled.text.push_str(&value);
                }
            }
        }
        // An author's text must not contain NUL either.
        if filled.text.contains('\0') {
            return Err(broken("holds a NUL character"));
        }
        Ok(Some(filled))
    }

    /// Refuses a value that a program would take for an option. Numbers are allowed if the schema wants a number there.
    fn refuse_option(&self, name: &str, text: &str, number: bool) -> Result<(), ToolError> {
        if !text.starts_with('-')
            || (number && self.values.property(name).is_some_and(wants_numbers))
        {
            return Ok(());
        }
        Err(ToolError::invalid_args(format!(
            "with this value of `{name}`, an argument of the program begins with \"-\": it would be \
             taken for an option"
        ))
        .with_hint(
            "Send a value that does not begin with \"-\"; for a file, put \"./\" before it.",
        ))
    }
}

/// Whether a schema lists all its values, so that the author wrote every one of them.
fn is_listed(schema: &Value) -> bool {
    schema.get("enum").is_some() || schema.get("const").is_some()
}

/// Whether a property, or every item of a list property, must be a number.
fn wants_numbers(property: &Value) -> bool {
    let numeric = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number" | "null"));
    let only_numbers = |schema: &Value| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().all(numeric),
        Some(kind) => numeric(kind),
        None => false,
    };
    only_numbers(property) || property.get("items").is_some_and(only_numbers)
}

fn argument_name(reference: &Reference) -> Option<&str> {
    match reference {
        Reference::Arg(name) => Some(name),
        Reference::Ctx(_) | Reference::Env(_) | Reference::Secret(_) => None,
    }
}

fn too_long(from: Option<&str>, limit: &str) -> ToolError {
    let message = match from {
        Some(name) => format!("the argument `{name}` is too long: {limit}"),
        None => format!("the command is too long: {limit}"),
    };
    ToolError::invalid_args(message).with_hint("Send less, or in several calls.")
}

/// An error about a declaration that no loader would have accepted.
fn broken(problem: &str) -> ToolError {
    ToolError::internal(format!("the tool's declaration {problem}"))
}

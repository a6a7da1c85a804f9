//! A jq program: parsed, checked for forbidden constructs, compiled.

use jaq_core::data::{DataT, HasLut};
use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::load::{Arena, Error as LoadError, File, Loader};
use jaq_core::path::Part;
use jaq_core::{Compiler, Lut};
use toolcrib_tool::ToolError;

use super::functions::{definitions, functions};
use super::meter;
use super::value::Value;

/// The longest program, in bytes.
pub(super) const MAX_BYTES: usize = 4_000;
/// The deepest nesting of brackets: every level needs stack in the parser.
const MAX_DEPTH: usize = 100;

/// The interpreter's data: our values, and a metered program.
pub(super) struct Engine;

impl DataT for Engine {
    type V<'a> = Value;
    type Data<'a> = Program<'a>;
}

/// The compiled terms. The interpreter asks for them at every step, so this is where a running query can be stopped.
#[derive(Clone, Copy)]
pub(super) struct Program<'a>(pub(super) &'a Lut<Engine>);

impl<'a> HasLut<'a, Engine> for Program<'a> {
    fn lut(&self) -> &'a Lut<Engine> {
        meter::step();
        self.0
    }
}

/// Compiles a program, or explains why it cannot.
pub(super) fn compile(code: &str) -> Result<jaq_core::Filter<Engine>, ToolError> {
    check_size(code)?;
    let arena = Arena::default();
    let file = File { code, path: () };
    let modules = Loader::new(definitions()).load(&arena, file).map_err(|errors| {
        let problem = errors.iter().find_map(|(_, error)| load_problem(code, error));
        refused(problem.unwrap_or_else(|| "it cannot be read".to_owned()))
    })?;
    // The loader also accepts modules, with metadata and imports; a query is one term.
    let term = jaq_core::load::parse(code, |parser| parser.term())
        .ok_or_else(|| refused("modules are not available here"))?;
    check_recursion(&term)?;
    Compiler::default().with_funs(functions()).compile(modules).map_err(|errors| {
        let undefined = errors.into_iter().flat_map(|(_, undefined)| undefined).next();
        refused(undefined.map_or_else(
            || "it cannot be compiled".to_owned(),
            |(name, kind)| format!("there is no {} `{name}`", kind.as_str()),
        ))
    })
}

fn refused(problem: impl std::fmt::Display) -> ToolError {
    ToolError::invalid_args(format!("`query` is not a valid jq program: {problem}")).with_hint(
        "Write it as for jq, for example `.items[] | select(.n > 1) | .name`. There are no \
         modules, files, environment or clock.",
    )
}

fn check_size(code: &str) -> Result<(), ToolError> {
    if code.len() > MAX_BYTES {
        return Err(refused(format!("it has {} bytes; the limit is {MAX_BYTES}", code.len())));
    }
    // Brackets inside strings count too; a real query never has so many.
    let mut depth = 0_usize;
    for byte in code.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(refused(format!("more than {MAX_DEPTH} brackets are nested")));
        }
    }
    Ok(())
}

fn load_problem(code: &str, error: &LoadError<&str>) -> Option<String> {
    let place = |part: &str| {
        let start = jaq_core::load::span(code, part).start.min(code.len());
        let shown: String = code[start..].chars().take(20).collect();
        let column = code[..start].chars().count() + 1;
        if shown.is_empty() {
            "at its end".to_owned()
        } else {
            format!("at character {column}, `{shown}`")
        }
    };
    match error {
        LoadError::Io(_) => Some("modules are not available here".to_owned()),
        LoadError::Lex(errors) => errors
            .first()
            .map(|(expected, part)| format!("{} is expected {}", expected.as_str(), place(part))),
        LoadError::Parse(errors) => errors
            .first()
            .map(|(expected, part)| format!("{} is expected {}", expected.as_str(), place(part))),
    }
}

/// Refuses recursive definitions.
///
/// Nobody knows what a query's own recursive definition keeps alive in each call (closures holding closures), and it is
/// dropped recursively. The library's loops (`recurse`, `while`, `until`, `repeat`) keep nothing and run in constant
/// stack, so the meter can stop them cleanly. jq has no other way to recurse: a definition sees only itself and the
/// definitions before or around it.
fn check_recursion(term: &Term<&str>) -> Result<(), ToolError> {
    match recursive(term, &mut Vec::new()) {
        None => Ok(()),
        Some(name) => Err(ToolError::invalid_args(format!(
            "`query` defines `{name}` recursively; recursive definitions are not supported"
        ))
        .with_hint("Use `recurse(f)`, `..`, `walk(f)`, `while`, `until` or `reduce` instead.")),
    }
}

/// The definitions around a term: name and number of parameters.
type Scope<'s> = Vec<(&'s str, usize)>;

/// The first definition that calls itself.
fn recursive<'s>(term: &Term<&'s str>, around: &mut Scope<'s>) -> Option<&'s str> {
    match term {
        Term::Id
        | Term::Recurse
        | Term::Num(_)
        | Term::Break(_)
        | Term::Var(_)
        | Term::Arr(None) => None,
        Term::Str(_, parts) => parts.iter().find_map(|part| match part {
            StrPart::Term(term) => recursive(term, around),
            StrPart::Str(_) | StrPart::Char(_) => None,
        }),
        Term::Arr(Some(inner)) | Term::Neg(inner) | Term::Label(_, inner) => {
            recursive(inner, around)
        }
        Term::Obj(members) => members.iter().find_map(|(key, value)| {
            recursive(key, around)
                .or_else(|| value.as_ref().and_then(|value| recursive(value, around)))
        }),
        Term::BinOp(left, operator, right) => recursive(left, around)
            .or_else(|| match operator {
                BinaryOp::Pipe(Some(pattern)) => in_pattern(pattern, around),
                _ => None,
            })
            .or_else(|| recursive(right, around)),
        Term::Fold(_, stream, pattern, arguments) => recursive(stream, around)
            .or_else(|| in_pattern(pattern, around))
            .or_else(|| any(arguments, around)),
        Term::TryCatch(tried, caught) => recursive(tried, around)
            .or_else(|| caught.as_ref().and_then(|caught| recursive(caught, around))),
        Term::IfThenElse(branches, otherwise) => branches
            .iter()
            .find_map(|(condition, then)| {
                recursive(condition, around).or_else(|| recursive(then, around))
            })
            .or_else(|| otherwise.as_ref().and_then(|last| recursive(last, around))),
        Term::Def(definitions, then) => definitions
            .iter()
            .find_map(|definition| in_definition(definition, around))
            .or_else(|| recursive(then, around)),
        Term::Call(name, arguments) => around
            .contains(&(*name, arguments.len()))
            .then_some(*name)
            .or_else(|| any(arguments, around)),
        Term::Path(of, path) => recursive(of, around).or_else(|| {
            path.0.iter().find_map(|(part, _)| match part {
                Part::Index(index) => recursive(index, around),
                Part::Range(start, end) => {
                    [start, end].into_iter().flatten().find_map(|bound| recursive(bound, around))
                }
            })
        }),
    }
}

fn any<'s>(terms: &[Term<&'s str>], around: &mut Scope<'s>) -> Option<&'s str> {
    terms.iter().find_map(|term| recursive(term, around))
}

fn in_definition<'s>(
    definition: &Def<&'s str, Term<&'s str>>,
    around: &mut Scope<'s>,
) -> Option<&'s str> {
    around.push((definition.name, definition.args.len()));
    let found = recursive(&definition.body, around);
    around.pop();
    found
}

fn in_pattern<'s>(pattern: &Pattern<&'s str>, around: &mut Scope<'s>) -> Option<&'s str> {
    match pattern {
        Pattern::Var(_) => None,
        Pattern::Arr(parts) => parts.iter().find_map(|part| in_pattern(part, around)),
        Pattern::Obj(members) => members
            .iter()
            .find_map(|(key, part)| recursive(key, around).or_else(|| in_pattern(part, around))),
    }
}

//! The rules of one tool, checked for each call.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use cel::{Context, Env, ExecutionError, Value as Cel};
use serde_json::Value;
use toolcrib_tool::{Arguments, Constraint, ContextValues, ErrorKind, ToolError, exact};

use crate::rule::Rule;
use crate::values::{inexact, to_cel, to_number};
use crate::walk;

/// The largest arguments in bytes of text, by the nesting depth of the rule's loops: a rule takes at most about 100,000
/// steps, or 1,000 by 1,000.
const ARGUMENTS_MAX_BYTES: [usize; 3] = [1024 * 1024, 128 * 1024, 2 * 1024];

/// Made once: it contains the functions and no values.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Rules, each with the message for a call that breaks it.
#[derive(Debug, Default)]
pub struct Constraints {
    rules: Vec<(Rule, String)>,
    /// Arguments whose schema has the type `number`.
    numbers: BTreeSet<String>,
    /// From names in rules to keys of the host's context, where these differ.
    keys: BTreeMap<String, String>,
}

impl Constraints {
    /// Rules in which whole numbers are integers and context values have their own keys.
    pub fn new(rules: impl IntoIterator<Item = (Rule, String)>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Reads from the schema of the arguments which of them are numbers with a fraction, even if a value is whole.
    #[must_use]
    pub fn with_schema(mut self, input: &Value) -> Self {
        let properties = input.get("properties").and_then(Value::as_object);
        let numbers = properties
            .into_iter()
            .flatten()
            .filter(|(_, property)| property.get("type").is_some_and(|kind| kind == "number"));
        self.numbers.extend(numbers.map(|(name, _)| name.clone()));
        self
    }

    /// Lets `ctx.name` refer to the context value under this key.
    #[must_use]
    pub fn with_context(mut self, name: impl Into<String>, key: impl Into<String>) -> Self {
        self.keys.insert(name.into(), key.into());
        self
    }

    /// The arguments with numbers that a rule would see changed, each with the first such number.
    fn inexact(&self, arguments: &Value) -> BTreeMap<String, String> {
        let members = arguments.as_object().into_iter().flatten();
        let number = |(name, value): (&String, &Value)| {
            Some((name.clone(), inexact(value, self.numbers.contains(name))?))
        };
        members.filter_map(number).collect()
    }

    fn arguments(&self, arguments: &Value) -> Cel {
        let members = arguments.as_object().into_iter().flatten();
        let members = members.map(|(name, value)| {
            let number = self.numbers.contains(name);
            (name.clone(), if number { to_number(value) } else { to_cel(value) })
        });
        Cel::from(members.collect::<HashMap<String, Cel>>())
    }

    /// The context values under their names in rules; null counts as missing.
    fn context(&self, values: &ContextValues) -> Cel {
        let own = values.iter();
        let renamed = self.keys.iter().filter_map(|(name, key)| Some((&**name, values.get(key)?)));
        let members: HashMap<String, Cel> = own
            .chain(renamed)
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.to_owned(), to_cel(value)))
            .collect();
        Cel::from(members)
    }
}

impl Constraint for Constraints {
    fn check(&self, arguments: &Arguments, values: &ContextValues) -> Result<(), ToolError> {
        if self.rules.is_empty() {
            return Ok(());
        }
        let length = arguments.as_str().len();
        let loops = self.rules.iter().map(|(rule, _)| rule.loops).max().unwrap_or_default();
        let limit = ARGUMENTS_MAX_BYTES.get(loops).copied().unwrap_or_default();
        if length > limit {
            return Err(ToolError::new(
                ErrorKind::Constraint,
                format!(
                    "the arguments have {length} bytes; the rules of this tool can be checked for at \
                     most {limit}"
                ),
            )
            .with_hint("Nothing was run. Call again with smaller arguments."));
        }
        // Nearly all numbers fit into a value, which is parsed already.
        let exact = match exact::protect(arguments.as_str()) {
            Cow::Borrowed(_) => Cow::Borrowed(arguments.value()),
            Cow::Owned(_) => Cow::Owned(arguments.exact().into_protected()),
        };
        let inexact = self.inexact(&exact);
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        context.add_variable_from_value("args", self.arguments(&exact));
        context.add_variable_from_value("ctx", self.context(values));
        let broken: Vec<BrokenRule<'_>> = self
            .rules
            .iter()
            .filter_map(|(rule, message)| {
                if let Some(why) = Inexact::of(rule, &inexact) {
                    return Some(BrokenRule {
                        message,
                        why: Some(Err(UnusableResult::Number(why))),
                    });
                }
                let why = match context.resolve(&rule.expression.root) {
                    Ok(Cel::Bool(true)) => return None,
                    Ok(Cel::Bool(false)) => None,
                    Ok(other) => Some(Err(UnusableResult::Yields(other.type_of().to_string()))),
                    Err(error) => Some(Ok(error)),
                };
                Some(BrokenRule { message, why })
            })
            .collect();
        refusal(&broken)
    }
}

/// A rule that the call breaks.
struct BrokenRule<'r> {
    message: &'r str,
    /// Why it could not be evaluated, if so: the error, or the unsuitable value.
    why: Option<Result<ExecutionError, UnusableResult>>,
}

/// Why a rule has no result although nothing failed.
enum UnusableResult {
    /// It yields a value of this type.
    Yields(String),
    /// It uses a number that it would see changed.
    Number(Inexact),
}

/// An argument with a number that rules cannot represent.
struct Inexact {
    argument: String,
    number: String,
}

impl Inexact {
    /// The first of these arguments that a rule uses.
    fn of(rule: &Rule, inexact: &BTreeMap<String, String>) -> Option<Self> {
        if inexact.is_empty() {
            return None;
        }
        let (named, _) = walk::arguments(&rule.expression.root);
        let (argument, number) = inexact.iter().find(|(name, _)| named.contains(*name))?;
        Some(Self { argument: argument.clone(), number: number.clone() })
    }
}

impl BrokenRule<'_> {
    /// The message, without context values, which the model must not see.
    fn said(&self) -> String {
        let message = self.message;
        match &self.why {
            None => message.to_owned(),
            Some(Ok(ExecutionError::NoSuchKey(name))) => {
                format!("{message} (This could not be checked: `{name}` is absent.)")
            }
            Some(Ok(ExecutionError::NoSuchOverload(overload))) => {
                format!("{message} (This could not be checked: {overload}.)")
            }
            Some(Ok(_)) => format!("{message} (This could not be checked for these arguments.)"),
            Some(Err(UnusableResult::Number(Inexact { argument, number }))) => format!(
                "{message} (This could not be checked: `{argument}` contains the number \
                 {number}, but rules support only 64-bit integers and doubles.)"
            ),
            Some(Err(UnusableResult::Yields(kind))) => format!(
                "{message} (This could not be checked: the rule yields a {kind} instead of true \
                 or false.)"
            ),
        }
    }
}

fn refusal(broken: &[BrokenRule<'_>]) -> Result<(), ToolError> {
    let error = match broken {
        [] => return Ok(()),
        [one] => ToolError::new(ErrorKind::Constraint, one.said()),
        several => {
            let message = format!("the call breaks {} rules of this tool", several.len());
            let error = ToolError::new(ErrorKind::Constraint, message);
            several.iter().fold(error, |error, one| error.with_hint(format!("- {}", one.said())))
        }
    };
    let cause = broken.iter().find_map(|one| match &one.why {
        Some(Ok(cause)) => Some(cause.clone()),
        _ => None,
    });
    let error = match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    };
    Err(error.with_hint("Nothing was run. Correct the arguments and call again."))
}

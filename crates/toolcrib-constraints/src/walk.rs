//! Checks every node of a rule: names, functions, depth, loops, and boolean operands.

use std::collections::BTreeSet;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, SelectExpr, operators,
};
use toolcrib_search::near_names;

use crate::expression::{DEPTH_MAX, Expression, RuleError};
use crate::names::Names;

use crate::shape::{Shape, literal_index, shape};

/// The functions of rules. Functions for time, regular expressions and bytes are excluded: with time the result would
/// depend on when a rule is evaluated, and regular expressions belong into the schema's `pattern`.
const FUNCTIONS: [&str; 10] = [
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

const OPERATORS: [&str; 18] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
];

/// How deeply `all`, `exists` and similar macros may be nested.
const LOOPS_MAX: usize = 2;

/// The result of the check.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The nesting depth of loops.
    pub(crate) loops: usize,
    pub(crate) errors: Vec<RuleError>,
}

/// Checks a rule, and its names if they are known.
pub(crate) fn walk(rule: &Expression, names: Option<&Names>) -> Walked {
    let mut walk = Walk { rule, names, locals: Vec::new(), loops: 0, found: Walked::default() };
    walk.question(&rule.root, "the rule is");
    walk.node(&rule.root, 0);
    walk.found.errors.sort_by_key(|error| error.range.start);
    walk.found
}

struct Walk<'r> {
    rule: &'r Expression,
    names: Option<&'r Names>,
    /// The variables of the loops around the node.
    locals: Vec<&'r str>,
    loops: usize,
    found: Walked,
}

impl<'r> Walk<'r> {
    fn error(&mut self, id: u64, piece: &str, message: String, help: Option<String>) {
        let range = self.rule.range(id, piece);
        let error = RuleError { range, message, help };
        if !self.found.errors.contains(&error) {
            self.found.errors.push(error);
        }
    }

    fn node(&mut self, node: &'r IdedExpr, depth: usize) {
        if depth > DEPTH_MAX {
            let message = format!("the rule nests more than {DEPTH_MAX} deep here");
            self.error(node.id, "", message, Some("split it into several rules".to_owned()));
            return;
        }
        let below = depth + 1;
        match &node.expr {
            Expr::Call(call) => self.call(node, call, below),
            Expr::Comprehension(comprehension) => self.comprehension(node, comprehension, below),
            Expr::Ident(name) => self.ident(node, name),
            Expr::List(list) => list.elements.iter().for_each(|item| self.node(item, below)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.node(&entry.key, below);
                        self.node(&entry.value, below);
                    }
                }
            }
            Expr::Select(select) => self.select(node, select, below),
            Expr::Struct(message) => {
                let message =
                    format!("rules do not support messages such as `{}`", message.type_name);
                self.error(node.id, "", message, Some("write a map: `{'key': value}`".to_owned()));
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn call(&mut self, node: &'r IdedExpr, call: &'r CallExpr, below: usize) {
        let name = call.func_name.as_str();
        let known = FUNCTIONS.contains(&name) || OPERATORS.contains(&name) || name.starts_with('@');
        if !known {
            let message = format!("rules have no function `{name}`");
            let help = match near_names(name, FUNCTIONS).first() {
                Some(near) => Some(format!("did you mean `{near}`?")),
                None if name == "matches" => {
                    Some("write the `pattern` into the schema of the argument".to_owned())
                }
                None => Some(format!(
                    "there are {}, and the macros has, all, exists, exists_one, filter and map",
                    FUNCTIONS.join(", ")
                )),
            };
            // The position of a call is that of its bracket.
            self.error(node.id, "", message, help);
        }
        if [operators::LOGICAL_AND, operators::LOGICAL_OR, operators::LOGICAL_NOT].contains(&name) {
            call.args.iter().for_each(|argument| self.question(argument, "this is"));
        }
        if name == operators::INDEX
            && let Some((of, key)) = literal_index(call)
        {
            self.member(node, of, key);
        }
        call.target.iter().for_each(|target| self.node(target, below));
        call.args.iter().for_each(|argument| self.node(argument, below));
    }

    fn comprehension(
        &mut self,
        node: &'r IdedExpr,
        comprehension: &'r ComprehensionExpr,
        below: usize,
    ) {
        self.node(&comprehension.iter_range, below);
        self.loops += 1;
        self.found.loops = self.found.loops.max(self.loops);
        if self.loops > LOOPS_MAX {
            let message = format!("loops nest more than {LOOPS_MAX} deep here");
            self.error(node.id, "", message, None);
        }
        let outside = self.locals.len();
        self.locals.push(&comprehension.iter_var);
        self.locals.extend(comprehension.iter_var2.as_deref());
        self.locals.push(&comprehension.accu_var);
        for part in [
            &comprehension.accu_init,
            &comprehension.loop_cond,
            &comprehension.loop_step,
            &comprehension.result,
        ] {
            self.node(part, below);
        }
        self.locals.truncate(outside);
        self.loops -= 1;
    }

    fn ident(&mut self, node: &IdedExpr, name: &str) {
        let known = ["args", "ctx"].contains(&name) || self.locals.contains(&name);
        // Types are names, too: `type(args.x) == string`.
        let of_type =
            ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];
        if known || of_type.contains(&name) || name.starts_with('@') {
            return;
        }
        let message = format!("there is nothing called `{name}`");
        let names = self.names;
        let argument = names.is_some_and(|names| names.kind(name).is_some());
        let context = names.is_some_and(|names| names.has_context(name));
        let help = match near_names(name, ["args", "ctx"]).first() {
            _ if argument => format!("write `args.{name}`"),
            _ if context => format!("write `ctx.{name}`"),
            Some(near) => format!("did you mean `{near}`?"),
            None => "rules use `args.NAME` and `ctx.NAME`; put strings in quotes".to_owned(),
        };
        self.error(node.id, name, message, Some(help));
    }

    fn select(&mut self, node: &'r IdedExpr, select: &'r SelectExpr, below: usize) {
        if let Expr::Ident(of) = &select.operand.expr {
            self.member(node, of, &select.field);
        }
        self.node(&select.operand, below);
    }

    /// `args.name` or `ctx.name`.
    fn member(&mut self, node: &IdedExpr, of: &str, name: &str) {
        let Some(names) = self.names.filter(|_| !self.locals.contains(&of)) else { return };
        let near = |known: Vec<&str>| {
            near_names(name, known).first().map(|near| format!("did you mean `{near}`?"))
        };
        if of == "args" && names.kind(name).is_none() {
            let help = if names.has_context(name) {
                Some(format!("it is a context value: write `ctx.{name}`"))
            } else {
                near(names.arguments().collect())
            };
            let help = help.or(Some("declare it in `input: {properties: …}`".to_owned()));
            self.error(node.id, name, format!("no argument is called `{name}`"), help);
        } else if of == "ctx" && !names.has_context(name) {
            let help = near(names.contexts().collect()).unwrap_or_else(|| {
                format!("declare it: `context: {{{name}: {{from: ctx.{name}}}}}`")
            });
            let message = format!("no context value is called `{name}`");
            self.error(node.id, name, message, Some(help));
        }
    }

    /// Checks a node that has to be true or false.
    fn question(&mut self, node: &IdedExpr, what: &str) {
        if let Shape::Other(other) = shape(node, self.names) {
            let message = format!("{what} {other} and neither true nor false");
            let help = "compare it with something: `… == …`".to_owned();
            let piece = match &node.expr {
                Expr::Select(select) => select.field.as_str(),
                _ => "",
            };
            self.error(node.id, piece, message, Some(help));
        }
    }
}

/// The arguments that an expression uses, and those that it tests with `has`.
pub(crate) fn arguments(expression: &IdedExpr) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut named, mut asked) = (BTreeSet::new(), BTreeSet::new());
    collect(expression, &mut named, &mut asked);
    (named, asked)
}

fn collect(node: &IdedExpr, named: &mut BTreeSet<String>, asked: &mut BTreeSet<String>) {
    match &node.expr {
        Expr::Call(call) => {
            if call.func_name == operators::INDEX
                && let Some(("args", key)) = literal_index(call)
            {
                named.insert(key.to_owned());
            }
            // `'x' in args` is equivalent to `has(args.x)`.
            if call.func_name == operators::IN
                && let [key, of] = call.args.as_slice()
                && matches!(&of.expr, Expr::Ident(of) if of == "args")
                && let Some(key) = crate::shape::text(key)
            {
                named.insert(key.to_owned());
                asked.insert(key.to_owned());
            }
            call.target.iter().for_each(|target| collect(target, named, asked));
            call.args.iter().for_each(|argument| collect(argument, named, asked));
        }
        Expr::Comprehension(comprehension) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } =
                &**comprehension;
            for part in [iter_range, accu_init, loop_cond, loop_step, result] {
                collect(part, named, asked);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|item| collect(item, named, asked)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    collect(&entry.key, named, asked);
                    collect(&entry.value, named, asked);
                }
            }
        }
        Expr::Select(select) => {
            if matches!(&select.operand.expr, Expr::Ident(of) if of == "args") {
                named.insert(select.field.clone());
                if select.test {
                    asked.insert(select.field.clone());
                }
            }
            collect(&select.operand, named, asked);
        }
        Expr::Struct(_) | Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => {}
    }
}

//! Determines whether an expression yields true or false, as far as that is possible without running it.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use crate::names::{Kind, Names};

/// The result type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// True or false.
    Question,
    /// Another type, as a word with its article.
    Other(&'static str),
    /// Unknown.
    Unknown,
}

pub(crate) fn shape(node: &IdedExpr, names: Option<&Names>) -> Shape {
    match &node.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(_) => Shape::Question,
            LiteralValue::Bytes(_) => Shape::Other("a row of bytes"),
            LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => {
                Shape::Other("a number")
            }
            LiteralValue::Null => Shape::Other("null"),
            LiteralValue::String(_) => Shape::Other("a text"),
        },
        Expr::List(_) => Shape::Other("a list"),
        Expr::Map(_) => Shape::Other("a map"),
        Expr::Select(select) if select.test => Shape::Question,
        Expr::Select(select) => match &select.operand.expr {
            Expr::Ident(of) => of_member(of, &select.field, names),
            _ => Shape::Unknown,
        },
        Expr::Call(call) => of_call(call, names),
        // `all` and `exists` yield a boolean, `map` and `filter` a list.
        Expr::Comprehension(comprehension) => match &comprehension.result.expr {
            Expr::Ident(_) => shape(&comprehension.accu_init, names),
            _ => shape(&comprehension.result, names),
        },
        Expr::Ident(of) if of == "args" || of == "ctx" => Shape::Other("a map"),
        Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified => Shape::Unknown,
    }
}

fn of_call(call: &CallExpr, names: Option<&Names>) -> Shape {
    match call.func_name.as_str() {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE
        | "contains"
        | "startsWith"
        | "endsWith" => Shape::Question,
        operators::ADD => Shape::Other("a sum"),
        operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE
        | "size"
        | "int"
        | "uint"
        | "double" => Shape::Other("a number"),
        "string" => Shape::Other("a text"),
        "type" => Shape::Other("a type"),
        operators::CONDITIONAL => {
            let mut branches = call.args.iter().skip(1).map(|branch| shape(branch, names));
            let other = branches.find(|branch| matches!(branch, Shape::Other(_)));
            other.unwrap_or(Shape::Unknown)
        }
        operators::INDEX => {
            literal_index(call).map_or(Shape::Unknown, |(of, key)| of_member(of, key, names))
        }
        _ => Shape::Unknown,
    }
}

fn of_member(of: &str, name: &str, names: Option<&Names>) -> Shape {
    if of != "args" {
        return Shape::Unknown;
    }
    match names.and_then(|names| names.kind(name)) {
        Some(Kind::Boolean) => Shape::Question,
        Some(Kind::Other) => Shape::Other("an argument of another type"),
        Some(Kind::Unknown) | None => Shape::Unknown,
    }
}

/// `of["key"]`.
pub(crate) fn literal_index(call: &CallExpr) -> Option<(&str, &str)> {
    match call.args.as_slice() {
        [IdedExpr { expr: Expr::Ident(of), .. }, key] => Some((of, text(key)?)),
        _ => None,
    }
}

/// A string literal.
pub(crate) fn text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

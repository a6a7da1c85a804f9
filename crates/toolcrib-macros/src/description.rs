//! Turns a doc comment into the description for models.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The description: an expression of type `&str`, or `None` without a doc comment.
pub(crate) fn description(attributes: &[Attribute]) -> Option<TokenStream> {
    let docs: Vec<&Expr> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(meta) => Some(&meta.value),
            _ => None,
        })
        .collect();
    let literal = |doc: &&Expr| match doc {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    };
    match docs.iter().map(literal).collect::<Option<Vec<_>>>() {
        Some(lines) => {
            let text = reflow(&lines.join("\n"));
            (!text.is_empty()).then(|| quote!(#text))
        }
        // Only the compiler can evaluate `#[doc = include_str!("…")]`, so it is used unchanged.
        None => Some(quote!(concat!(#(#docs, "\n"),*).trim())),
    }
}

/// Joins the lines of each paragraph, because line breaks in the source have no meaning. Lists, headings, quotes,
/// tables and code keep their lines.
fn reflow(docs: &str) -> String {
    let mut text = String::new();
    let mut in_fence = false;
    let mut may_continue = false;
    for line in docs.lines() {
        let fence = line.trim_start().starts_with("```");
        let code = in_fence || fence || line.starts_with("     ");
        let line =
            if code { line.strip_prefix(' ').unwrap_or(line) } else { line.trim() }.trim_end();
        if may_continue && !code && !line.is_empty() && !starts_block(line) {
            text.push(' ');
        } else if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
        may_continue = !code && !line.is_empty() && !line.starts_with(['#', '|']);
        in_fence ^= fence;
    }
    text.trim().to_owned()
}

/// Whether a line starts a block instead of continuing a paragraph.
fn starts_block(line: &str) -> bool {
    let numbered = line.split_once(['.', ')']).is_some_and(|(number, rest)| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with(' ')
    });
    numbered
        || ["- ", "* ", "+ "].iter().any(|bullet| line.starts_with(bullet))
        || line.starts_with(['#', '|', '>'])
}

#[cfg(test)]
mod tests {
    use super::reflow;

    #[test]
    fn lines_of_a_paragraph_are_joined_and_paragraphs_stay_apart() {
        assert_eq!(reflow(" Add two\n numbers.\n\n Exactly.\n"), "Add two numbers.\n\nExactly.");
    }

    #[test]
    fn lists_headings_and_code_keep_their_lines() {
        let docs =
            " Does:\n - one\n   thing\n - two\n 1. first\n # Title\n rest\n ```\n a\n   b\n ```";
        let expected = "Does:\n- one thing\n- two\n1. first\n# Title\nrest\n```\na\n  b\n```";
        assert_eq!(reflow(docs), expected);
    }

    #[test]
    fn blank_docs_are_no_description() {
        assert_eq!(reflow("  \n \n"), "");
    }
}

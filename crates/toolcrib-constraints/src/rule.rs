//! A rule: parsed, and checked as far as possible without the tool.

use std::collections::BTreeSet;

use crate::expression::{Expression, RuleError};
use crate::names::Names;
use crate::walk::{self, Walked};

/// The names that a rule uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// The arguments, by name.
    pub arguments: BTreeSet<String>,
    /// The optional ones among them that the rule uses without `has`: a call without such an argument is refused.
    pub unguarded: BTreeSet<String>,
}

/// An expression that accepts or refuses a call.
#[derive(Debug)]
pub struct Rule {
    pub(crate) expression: Expression,
    /// The nesting depth of loops.
    pub(crate) loops: usize,
}

impl Rule {
    /// Parses a rule.
    ///
    /// ```
    /// use toolcrib_constraints::Rule;
    ///
    /// assert!(Rule::parse("size(args.names) < 10 && !('root' in args.names)").is_ok());
    /// let wrong = Rule::parse("args.lines + 1").unwrap_err();
    /// assert_eq!(wrong[0].message, "the rule is a sum and neither true nor false");
    /// let wrong = Rule::parse("sise(args.names) < 10").unwrap_err();
    /// assert_eq!(wrong[0].help.as_deref(), Some("did you mean `size`?"));
    /// ```
    ///
    /// # Errors
    /// All errors of the rule, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<RuleError>> {
        Self::read(text, None)
    }

    /// Parses a rule of a tool with these names: other names are errors, too.
    ///
    /// ```
    /// use toolcrib_constraints::{Kind, Names, Rule};
    ///
    /// let names = Names::new().argument("lines", Kind::Other, true).context("cluster");
    /// let wrong = Rule::parse_for("args.lnes <= 500 || ctx.cluster == 'dev'", &names).unwrap_err();
    /// assert_eq!(wrong[0].message, "no argument is called `lnes`");
    /// assert_eq!(wrong[0].help.as_deref(), Some("did you mean `lines`?"));
    /// assert_eq!(wrong[0].range, 5..9);
    /// ```
    pub fn parse_for(text: &str, names: &Names) -> Result<Self, Vec<RuleError>> {
        Self::read(text, Some(names))
    }

    fn read(text: &str, names: Option<&Names>) -> Result<Self, Vec<RuleError>> {
        let expression = Expression::parse(text)?;
        let Walked { loops, errors } = walk::walk(&expression, names);
        if errors.is_empty() { Ok(Self { expression, loops }) } else { Err(errors) }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.expression.text
    }

    /// The names that the rule uses.
    pub fn uses(&self, names: &Names) -> Uses {
        let (arguments, asked) = walk::arguments(&self.expression.root);
        let unguarded = arguments
            .iter()
            .filter(|name| names.may_be_absent(name) && !asked.contains(*name))
            .cloned()
            .collect();
        Uses { arguments, unguarded }
    }
}

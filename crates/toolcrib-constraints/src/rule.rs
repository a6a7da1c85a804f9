//! A rule: read, and checked as far as it can be without knowing the tool.

use std::collections::BTreeSet;

use crate::expression::{Expression, RuleError};
use crate::names::Names;
use crate::walk::{self, Walked};

/// What a rule asks about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// The arguments, by name.
    pub arguments: BTreeSet<String>,
    /// Of these, the ones a call may lack although the rule does not ask whether they are there:
    /// such a call is refused.
    pub unguarded: BTreeSet<String>,
}

/// An expression that asks a question about a call.
#[derive(Debug)]
pub struct Rule {
    pub(crate) expression: Expression,
    /// How deep loops stand within one another.
    pub(crate) loops: usize,
}

impl Rule {
    /// Reads a rule.
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
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<RuleError>> {
        Self::read(text, None)
    }

    /// Reads a rule of a tool with these names: others are errors, too.
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

    /// What the rule asks about.
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

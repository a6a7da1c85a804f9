//! Rules over the arguments of a call and the host's context, in
//! [CEL](https://github.com/google/cel-spec): what a schema cannot say, said in a line.
//!
//! A [`Rule`] is read once, and then nothing is left to be found out at a call that could have been
//! found out before: its size and depth, unknown names and functions, and whether it is a question
//! at all. [`Constraints`] are the rules of one tool. They are a
//! [`Constraint`](toolcrib_tool::Constraint), so that any entry can have them, and hold for every
//! call in every way it is made:
//!
//! ```
//! use std::collections::BTreeMap;
//! use toolcrib_constraints::{Constraints, Rule};
//! use toolcrib_tool::{Arguments, Constraint, ContextValues, ErrorKind};
//!
//! let rule = Rule::parse("args.lines <= 500 || ctx.cluster == 'dev'")?;
//! let rules = Constraints::new([(rule, "At most 500 lines outside dev.".to_owned())]);
//!
//! let arguments = Arguments::from_validated(r#"{"lines": 900}"#.to_owned());
//! let in_cluster = |name: &str| ContextValues::new().with("cluster", name);
//! assert!(rules.check(&arguments, &in_cluster("dev")).is_ok());
//! let refused = rules.check(&arguments, &in_cluster("stage")).unwrap_err();
//! assert_eq!(refused.kind(), ErrorKind::Constraint);
//! assert_eq!(refused.message(), "At most 500 lines outside dev.");
//! # Ok::<(), Vec<toolcrib_constraints::RuleError>>(())
//! ```
//!
//! A rule that cannot be evaluated has not been kept: the call is refused. `args.x` of an argument
//! that is absent cannot be; `has(args.x)` asks whether it is there.
#![forbid(unsafe_code)]

mod constraints;
mod expression;
mod names;
mod rule;
mod shape;
mod values;
mod walk;

pub use constraints::Constraints;
pub use expression::{RULE_MAX_BYTES, RuleError};
pub use names::{Kind, Names};
pub use rule::{Rule, Uses};

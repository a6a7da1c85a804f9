//! Rules over the arguments of a call and the host's context, in [CEL](https://github.com/google/cel-spec): one line
//! for conditions that a schema cannot express.
//!
//! A [`Rule`] is parsed once and checked as far as possible before any call: its size and depth, unknown names and
//! functions, and whether it yields true or false. [`Constraints`] are the rules of one tool. They implement
//! [`Constraint`](toolcrib_tool::Constraint), so any entry can have them, and they apply to every call, however it is
//! made:
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
//! If a rule cannot be evaluated, the call is refused. `args.x` cannot be evaluated if the argument is absent;
//! `has(args.x)` tests whether it is there.
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

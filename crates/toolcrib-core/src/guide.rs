//! The guide: one page per subject, in the order in which a user meets them.
//!
//! Every example is complete: copied into a `main.rs` it compiles and runs, and it is run as a test
//! of this crate. It asserts what it shows. For shortness most examples make their registry with
//! [`Registry::scratch`](crate::Registry::scratch), which takes closures; a host makes its own with
//! [`RegistryBuilder`](crate::RegistryBuilder), as the first pages show.
//!
//! | page | answers |
//! |---|---|
//! | [`tools`] | What is a tool? What is a result, and who reads it how? |
//! | [`names`] | Who owns a name? What changes while calls run? Who may see which tools? |
//! | [`calls`] | What happens to what a model sends? How does a call fail? |
//! | [`context`] | What does a tool get that no model can set? |
//! | [`consent`] | Which calls run, which are asked about, which wait, and where? |
//! | [`answers`] | When need a call not run at all? |
//! | [`limits`] | How long, how many, how often; and what is tried again? |
//! | [`output`] | How much of an output does a model get, and where is the rest? Where do secrets stay? |
//! | [`listening`] | Who hears of calls: people, consoles, logs, metrics, auditors? |
//! | [`hooks`] | Where does a host put its own code around calls? |
//! | [`lifecycle`] | When is a tool made, refreshed and closed? How does a host end? |
//! | [`testing`] | How are tools and hosts tested without their surroundings? |

/// What a tool is, and what it answers with.
///
#[doc = include_str!("docs/guide/tools.md")]
pub mod tools {}

/// Who owns which name, and who may use it.
///
#[doc = include_str!("docs/guide/names.md")]
pub mod names {}

/// From what a model sends to what a tool gets.
///
#[doc = include_str!("docs/guide/calls.md")]
pub mod calls {}

/// What a host hands to its tools.
///
#[doc = include_str!("docs/guide/context.md")]
pub mod context {}

/// Policy, approval, and calls that wait.
///
#[doc = include_str!("docs/guide/consent.md")]
pub mod consent {}

/// Calls that need not run: cache, sessions, and the same call at the same time.
///
#[doc = include_str!("docs/guide/answers.md")]
pub mod answers {}

/// Time, number and rate of calls.
///
#[doc = include_str!("docs/guide/limits.md")]
pub mod limits {}

/// What of an output reaches a model.
///
#[doc = include_str!("docs/guide/output.md")]
pub mod output {}

/// Events, statistics, audit and traces.
///
#[doc = include_str!("docs/guide/listening.md")]
pub mod listening {}

/// A host's own code around every call.
///
#[doc = include_str!("docs/guide/hooks.md")]
pub mod hooks {}

/// The life of a tool and of an executor.
///
#[doc = include_str!("docs/guide/lifecycle.md")]
pub mod lifecycle {}

/// Tests without the tools' surroundings.
///
#[doc = include_str!("docs/guide/testing.md")]
pub mod testing {}

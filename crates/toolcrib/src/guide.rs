//! The guide for programs that use the library. The one of the [core](toolcrib_core::guide) has a page for
//! each subject.
//!
//! | page | answers |
//! |---|---|
//! | [`five_tasks`] | How little code do the most common tasks take, and how much in rmcp? |
//! | [`approve_elsewhere`] | How does a call wait for an approval in another process, and how does its caller get the result? |
//! | `agents` (features `agent` and `wire`) | How does a program run an agent, show what it does, and test it? |

/// Five common tasks, beside the same in rmcp.
///
#[doc = include_str!("docs/guide/five_tasks/intro.md")]
#[doc = include_str!("docs/guide/five_tasks/register.md")]
#[doc = "\nIn rmcp:\n\n```text"]
#[doc = include_str!("docs/guide/five_tasks/rmcp/register.rs")]
#[doc = "```\n"]
#[doc = include_str!("docs/guide/five_tasks/identity.md")]
#[doc = "\nIn rmcp:\n\n```text"]
#[doc = include_str!("docs/guide/five_tasks/rmcp/identity.rs")]
#[doc = "```\n"]
#[doc = include_str!("docs/guide/five_tasks/batch.md")]
#[doc = "\nIn rmcp:\n\n```text"]
#[doc = include_str!("docs/guide/five_tasks/rmcp/batch.rs")]
#[doc = "```\n"]
#[doc = include_str!("docs/guide/five_tasks/approve.md")]
#[doc = include_str!("docs/guide/five_tasks/stream.md")]
#[doc = "\nIn rmcp:\n\n```text"]
#[doc = include_str!("docs/guide/five_tasks/rmcp/stream.rs")]
#[doc = "```\n"]
pub mod five_tasks {}

/// Approve a call in another process, and get its result back.
///
#[doc = include_str!("docs/guide/approve_elsewhere.md")]
pub mod approve_elsewhere {}

/// Run an agent, show what it does, and test it.
///
#[doc = include_str!("docs/guide/agents/run.md")]
#[doc = include_str!("docs/guide/agents/stream.md")]
#[doc = include_str!("docs/guide/agents/test.md")]
#[cfg(all(feature = "agent", feature = "wire"))]
pub mod agents {}

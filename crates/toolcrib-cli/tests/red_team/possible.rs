//! Which combinations are meaningful; others are in no row.

use crate::dimensions::{Files, Goal, Layout, Right, Row, Surface, Tool, User};

/// Tools through which hostile code runs.
pub(crate) const CODE: &[Tool] = &[
    Tool::Bash,
    Tool::PythonStrict,
    Tool::PythonStandard,
    Tool::PythonLenient,
    Tool::Command,
    Tool::CommandNet,
    Tool::CommandPure,
    Tool::Program,
    Tool::Script,
    Tool::Shell,
    Tool::Worker,
    Tool::Upstream,
    Tool::GitStatus,
];

/// Tools whose profile grants the network.
const NETWORKED: &[Tool] = &[Tool::PythonLenient, Tool::CommandNet, Tool::Upstream];

/// Tools whose programs start with each call and may write to the workspace. A program that is running while a file is
/// removed can always create it, as SECURITY.md says.
const EDITED_BESIDE: &[Tool] =
    &[Tool::Bash, Tool::PythonStandard, Tool::Command, Tool::Script, Tool::Shell];

/// Goals that are reached by reading a place.
pub(crate) const READS: &[Goal] =
    &[Goal::HomeKey, Goal::HomeNote, Goal::OperatorToken, Goal::StateFile];

/// Goals that are reached by changing the control plane.
pub(crate) const WRITES: &[Goal] = &[
    Goal::WriteConfig,
    Goal::WriteManifest,
    Goal::WriteNewManifest,
    Goal::WriteLock,
    Goal::WriteRecords,
    Goal::WriteScript,
    Goal::WriteProgram,
    Goal::WriteServer,
    Goal::WriteSecret,
];

/// Goals that take seconds and do not depend on the client: tried with a tool for each kind of
/// jail.
pub(crate) const SLOW: &[Goal] = &[Goal::DeepScratch, Goal::ManyThreads, Goal::TakeMemory];

/// Whether a row is meaningful.
pub(crate) fn possible(row: &Row) -> bool {
    by_door(row) && by_tool(row) && by_circumstances(row)
}

fn by_door(row: &Row) -> bool {
    match row.surface {
        Surface::Rest | Surface::Mcp => !matches!(row.right, Right::Local | Right::LocalCall),
        Surface::Stdio => matches!(row.right, Right::Local | Right::LocalCall),
        Surface::Cli => row.right == Right::Local,
    }
}

fn by_tool(row: &Row) -> bool {
    let (tool, goal) = (row.tool, row.goal);
    match goal {
        _ if READS.contains(&goal) => {
            CODE.contains(&tool)
                || matches!(
                    tool,
                    Tool::FileRead
                        | Tool::FileList
                        | Tool::FileSearch
                        | Tool::GitLog
                        | Tool::TailLog
                        | Tool::SearchLog
                        | Tool::ArchiveListing
                        | Tool::DirectorySize
                        | Tool::FileDetails
                        | Tool::LargeFiles
                )
                || (tool == Tool::Reports && goal == Goal::OperatorToken)
        }
        _ if WRITES.contains(&goal) => {
            CODE.contains(&tool)
                || matches!(
                    tool,
                    Tool::FileWrite
                        | Tool::FileAppend
                        | Tool::EditFile
                        | Tool::FileDelete
                        | Tool::FileMkdir
                )
        }
        Goal::RunUnconfined => CODE.contains(&tool) || tool == Tool::FileWrite,
        Goal::RunWhileEdited => EDITED_BESIDE.contains(&tool),
        Goal::Loopback => CODE.contains(&tool) && !NETWORKED.contains(&tool),
        Goal::OwnApproval => tool == Tool::Letter,
        // One tool of each kind that starts programs, and file tools.
        Goal::OthersHome => matches!(
            tool,
            Tool::Temporary
                | Tool::Bash
                | Tool::PythonLenient
                | Tool::CommandPure
                | Tool::Worker
                | Tool::Upstream
                | Tool::FileRead
                | Tool::FileList
                | Tool::FileSearch
                | Tool::FileWrite
                | Tool::EditFile
                | Tool::FileDelete
        ),
        // The widest grant, and another MCP server.
        Goal::KeptHome => matches!(tool, Tool::Temporary | Tool::Upstream),
        Goal::OthersRun | Goal::OthersKey => tool == Tool::Runs,
        Goal::OthersSpill => tool == Tool::ReadOutput,
        Goal::CwdLink => tool == Tool::Cwd,
        Goal::GrantLink => tool == Tool::Grant,
        Goal::InterpreterLine => tool == Tool::Program,
        Goal::SecretAtCut | Goal::RedactedAtCut => tool == Tool::Secret,
        Goal::AcceptUnseen | Goal::LookRunsProgram => tool == Tool::CommandLine,
        _ => CODE.contains(&tool),
    }
}

fn by_circumstances(row: &Row) -> bool {
    let may_approve = matches!(row.right, Right::Operator | Right::CallApprove | Right::Local);
    match row.goal {
        // A client that may approve gains nothing by approving.
        Goal::OwnApproval => !may_approve,
        // The operator and approvers may see waiting calls.
        Goal::OthersRun => {
            matches!(row.surface, Surface::Rest)
                && !matches!(row.right, Right::Operator | Right::CallApprove | Right::NoAuth)
                && row.files == Files::Present
        }
        Goal::OperatorToken if row.tool == Tool::Reports => {
            row.right != Right::NoAuth
                && matches!(row.surface, Surface::Rest | Surface::Mcp)
                && row.files == Files::Present
        }
        Goal::RunWhileEdited => {
            row.surface == Surface::Rest && row.right == Right::Call && row.layout == Layout::Dot
        }
        // The client makes no difference to what a program reaches.
        Goal::KeptHome => row.surface == Surface::Rest && row.right == Right::Call,
        Goal::OthersKey => matches!(row.surface, Surface::Rest) && row.right != Right::NoAuth,
        Goal::OthersSpill => row.right != Right::NoAuth && row.surface != Surface::Cli,
        Goal::AcceptUnseen | Goal::LookRunsProgram => {
            row.surface == Surface::Cli && row.files == Files::Present && row.user == User::Root
        }
        goal if SLOW.contains(&goal) => {
            row.surface == Surface::Rest
                && row.right == Right::Call
                && row.files == Files::Present
                && row.layout == Layout::Folder
                && matches!(
                    row.tool,
                    Tool::Bash
                        | Tool::PythonStandard
                        | Tool::PythonLenient
                        | Tool::CommandPure
                        | Tool::Worker
                )
        }
        _ => true,
    }
}

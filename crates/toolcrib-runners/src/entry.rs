//! Makes registry entries from declarations.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use toolcrib_manifest::declaration::{Declaration, DeclaredBody};
use toolcrib_tool::{Layer, Source, Tool, ToolDefinition, ToolEntry};

#[cfg(feature = "http")]
use crate::HttpRunner;
use crate::availability::{ProgramLookups, missing};
use crate::trust_guard::TrustGuard;
use crate::{CommandRunner, RunnerHost, TrustDecision, WorkerRunner, tool_trust_decision};

/// Makes the tool that a declaration describes. If something keeps it from running here, the tool is unavailable with
/// that reason; missing values are never replaced by empty or invented ones. A tool that the client runs is always
/// available.
pub fn entry(declaration: &Declaration, host: &RunnerHost) -> ToolEntry {
    entry_with(declaration, host, &ProgramLookups::default())
}

/// Like [`entry`], with a cache of program lookups.
fn entry_with(
    declaration: &Declaration,
    host: &RunnerHost,
    programs: &ProgramLookups,
) -> ToolEntry {
    let source = Source::new(Layer::Manifest, declaration.origin.file.clone())
        .at(declaration.origin.clone());
    let digest = declaration.digest();
    if declaration.body == DeclaredBody::Client {
        let definition = ToolDefinition::clone(&declaration.definition);
        let entry = ToolEntry::client(definition, source).with_digest(digest);
        return constrained(located(entry), declaration);
    }
    let host = &host.of_file(&declaration.origin.file);
    let word = tool_trust_decision(declaration, &digest, host);
    let pinned;
    let host = if word == Some(TrustDecision::TrustedForDigest) {
        // The operator's trust covers the contents of its files, too.
        pinned = host.clone().with_pinned_scripts(true);
        &pinned
    } else {
        host
    };
    let (body, defect) = body(declaration, host);
    let body: Arc<dyn Tool> = Arc::new(TrustGuard::new(body, declaration, &digest, host));
    let mut missing = missing(declaration, host, programs);
    if let Some(TrustDecision::Untrusted { remedy }) = word
        && !host.for_plans
    {
        missing.insert(0, remedy);
    }
    missing.extend(defect);
    let entry = ToolEntry::new(Arc::clone(&declaration.definition), body, source);
    let entry = constrained(located(entry.with_digest(digest)), declaration);
    let reason = declaration.command().and_then(|command| command.unsafe_argv.as_deref());
    let entry = match reason {
        Some(reason) => entry.with_unsafe_argv(reason),
        None => entry,
    };
    if missing.is_empty() { entry } else { entry.unavailable(missing.join("; ")) }
}

/// Adds the path of its manifest as all servers find it: they may be started in other folders, or with another spelling
/// of the config's path.
fn located(entry: ToolEntry) -> ToolEntry {
    let file = Path::new(&entry.source.unit);
    let path = std::path::absolute(file).ok().and_then(|file| {
        let folder = file.parent()?.canonicalize().ok()?;
        Some(folder.join(file.file_name()?).to_string_lossy().into_owned())
    });
    match path {
        Some(path) => entry.with_unit_everywhere(path),
        None => entry,
    }
}

/// Making this many entries takes longer than starting a thread.
const ENTRIES_PER_THREAD: usize = 32;

/// Makes the tools of many declarations on all processors, in order; each as [`entry`] does.
pub fn entries(declarations: &[&Declaration], host: &RunnerHost) -> Vec<ToolEntry> {
    let make = |part: &[&Declaration]| -> Vec<ToolEntry> {
        let programs = ProgramLookups::default();
        part.iter().map(|declaration| entry_with(declaration, host, &programs)).collect()
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let part = declarations.len().div_ceil(threads).max(ENTRIES_PER_THREAD);
    let Some((own, others)) = declarations.split_at_checked(part) else {
        return make(declarations);
    };
    thread::scope(|scope| {
        let others: Vec<_> =
            others.chunks(part).map(|part| scope.spawn(move || make(part))).collect();
        let mut entries = make(own);
        for other in others {
            match other.join() {
                Ok(theirs) => entries.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        entries
    })
}

/// The body that runs the tool, and the reason why it cannot run, if there is one.
fn body(declaration: &Declaration, host: &RunnerHost) -> (Arc<dyn Tool>, Option<String>) {
    #[cfg(feature = "http")]
    if declaration.http().is_some() {
        let runner = HttpRunner::new(declaration, host);
        let defect = runner.defect().map(str::to_owned);
        return (Arc::new(runner), defect);
    }
    if declaration.worker().is_some() {
        let runner = WorkerRunner::new(declaration, host);
        let defect = runner.defect().map(str::to_owned);
        return (Arc::new(runner), defect);
    }
    let runner = CommandRunner::new(declaration, host);
    let defect = runner.defect().map(str::to_owned);
    (Arc::new(runner), defect)
}

/// Adds the constraints of its declaration to an entry. A constraint that cannot be checked makes the tool unavailable.
#[cfg(feature = "cel")]
fn constrained(entry: ToolEntry, declaration: &Declaration) -> ToolEntry {
    use toolcrib_constraints::{Constraints, Rule};

    if declaration.constraints.is_empty() {
        return entry;
    }
    let rules: Result<Vec<_>, _> = declaration
        .constraints
        .iter()
        .map(|own| Rule::parse(&own.rule).map(|rule| (rule, own.message.clone())))
        .collect();
    match rules {
        Ok(rules) => {
            let constraints =
                Constraints::new(rules).with_schema(declaration.definition.input_schema());
            let context = declaration.context.iter();
            let constraints = context.fold(constraints, |constraints, parameter| {
                constraints.with_context(&parameter.name, &parameter.key)
            });
            entry.with_constraint(Arc::new(constraints))
        }
        Err(errors) => {
            let why = errors.first().map_or_else(String::new, ToString::to_string);
            entry.unavailable(format!("one of its constraints cannot be used: {why}"))
        }
    }
}

#[cfg(not(feature = "cel"))]
fn constrained(entry: ToolEntry, declaration: &Declaration) -> ToolEntry {
    if declaration.constraints.is_empty() {
        return entry;
    }
    entry.unavailable("its constraints need a program that was built with the feature `cel`")
}

//! Checks whether everything a declaration needs is available.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use toolcrib_manifest::declaration::{ArgvEntry, Declaration, DeclaredBody, SandboxSpec};
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_sandbox::{NO_PROGRAMS, STARTS_PROGRAMS, find_program};

use crate::command::script;
use crate::confinement::confinement;
use crate::trust::TrustRenewal;
use crate::trust::pinned_files;
use crate::{DecidingFiles, RunnerHost, Secrets};

/// A cache of program lookups during one start or reload: many tools run the same few programs, and each lookup
/// searches all directories of `PATH`.
#[derive(Debug, Default)]
pub(crate) struct ProgramLookups {
    found: RefCell<HashMap<String, bool>>,
    /// Reasons why no program can start under a confinement. Most declarations ask for the same confinement.
    unstartable: RefCell<Vec<(SandboxSpec, Option<String>)>>,
}

impl ProgramLookups {
    fn has(&self, program: &str) -> bool {
        let known = self.found.borrow().get(program).copied();
        known.unwrap_or_else(|| {
            let found = find_program(program).is_ok();
            self.found.borrow_mut().insert(program.to_owned(), found);
            found
        })
    }

    /// Why no program can start under this confinement, if none can.
    fn unstartable(&self, sandbox: &SandboxSpec, host: &RunnerHost) -> Option<String> {
        let mut known = self.unstartable.borrow_mut();
        if let Some((_, reason)) = known.iter().find(|(other, _)| other == sandbox) {
            return reason.clone();
        }
        let reason = confinement(sandbox, host).check().err();
        known.push((sandbox.clone(), reason.clone()));
        reason
    }
}

/// Everything that is missing, one clause for each problem, without duplicates.
pub(crate) fn missing(
    declaration: &Declaration,
    host: &RunnerHost,
    known: &ProgramLookups,
) -> Vec<String> {
    let runs = declaration.command().is_some() || declaration.worker().is_some();
    if runs && !STARTS_PROGRAMS {
        return vec![NO_PROGRAMS.to_owned()];
    }
    let needs = &declaration.needs;
    // For variables that hold secrets, the advice follows below.
    let plain = |name: &&String| host.secrets.held_in_variable(name).is_none();
    let unset = |name: &&String| std::env::var(name).is_err();
    let variables = needs.env.iter().filter(plain).filter(unset).map(|name| {
        format!("needs the environment variable `{name}`, which the server does not have")
    });
    if host.for_plans {
        return variables.collect();
    }
    let mut programs: Vec<&str> = needs.bins.iter().map(String::as_str).collect();
    if let Some(program) = own_program(declaration)
        && !programs.contains(&program)
    {
        programs.push(program);
    }
    let programs = programs.into_iter().filter(|program| !known.has(program)).map(|program| {
        if program.contains('/') {
            format!("needs the program `{program}`, which is not an executable file here")
        } else {
            format!("needs the program `{program}`, which is not on PATH")
        }
    });
    let advice = || TrustRenewal::of_tool(declaration, host).advice(host);
    let script = declaration.command().and_then(|command| command.script.as_ref());
    let script = script.and_then(|script| script::start(script, host.pinned_scripts, advice).err());
    let beside = declaration.worker().and_then(|worker| {
        let program = worker.argv.first().filter(|program| program.contains('/'))?;
        find_program(worker.folder.join(program))
            .err()
            .map(|_| format!("needs the program `{program}`, which is not an executable file here"))
    });
    // Skip those reported above.
    let named = declaration.command().and_then(|command| command.script.as_ref());
    let named: Vec<_> = named
        .map(|script| script.path.clone())
        .into_iter()
        .chain(own_program(declaration).map(PathBuf::from))
        .chain(
            declaration.worker().and_then(|worker| Some(worker.folder.join(worker.argv.first()?))),
        )
        .filter_map(|path| std::path::absolute(path).ok())
        .collect();
    let deciding = DecidingFiles::of_tool(declaration, host);
    let problem = deciding.problem(host);
    let absent = deciding
        .missing
        .into_iter()
        .filter(|path| std::path::absolute(path).is_ok_and(|path| !named.contains(&path)))
        .map(|path| format!("runs `{}`, which does not exist", path.display()));
    let files = declaration.worker().into_iter().flat_map(|worker| worker.files.values());
    let files = files.filter(|_| host.pinned_scripts);
    let files = files.filter_map(|file| script::unchanged(file, advice).err());
    let named = declaration.command().into_iter().flat_map(|command| command.files.values());
    let named = named.filter(|_| host.pinned_scripts).filter_map(pinned_files::defect);
    let secrets = needs.secrets.iter().filter_map(|name| host.secrets.check(name).err());
    let secrets = secrets.map(|missing| missing.to_string());
    programs
        .chain(script)
        .chain(beside)
        .chain(absent)
        .chain(problem)
        .chain(files)
        .chain(named)
        .chain(variables)
        .chain(secrets)
        .chain(leaks(declaration, &host.secrets))
        .chain(runs.then(|| known.unstartable(&declaration.sandbox, host)).flatten())
        .collect()
}

/// Variables that hold secrets but that the declaration uses as ordinary variables. It has to use the secret instead,
/// so that the value stays out of argument vectors.
fn leaks(declaration: &Declaration, secrets: &Secrets) -> Vec<String> {
    let (passed, references): (&[String], Vec<&Reference>) = match &declaration.body {
        DeclaredBody::Command(command) => (&command.pass_env, command.references().collect()),
        DeclaredBody::Worker(worker) => {
            (&worker.pass_env, worker.env.values().flat_map(Template::references).collect())
        }
        DeclaredBody::Http(http) => (&[], http.references().collect()),
        DeclaredBody::Client => return Vec::new(),
    };
    let passed = passed.iter().filter_map(|variable| {
        let secret = secrets.held_in_variable(variable)?;
        Some(format!(
            "passes on the variable `{variable}`, which holds the secret `{secret}`: write \
             `env: {{{variable}: \"${{secret.{secret}}}\"}}` instead of `pass_env`"
        ))
    });
    let referred = references.into_iter().filter_map(|reference| {
        let Reference::Env(variable) = reference else { return None };
        let secret = secrets.held_in_variable(variable)?;
        Some(format!(
            "refers to `{reference}`, which holds the secret `{secret}`: write `${{secret.{secret}}}`"
        ))
    });
    passed.chain(referred).collect()
}

/// The program of the declaration, if it can be looked up before a call: its path is not relative to a working
/// directory, and the declaration sets no `PATH` for it.
fn own_program(declaration: &Declaration) -> Option<&str> {
    let command = declaration.command().filter(|command| command.script.is_none())?;
    let Some(ArgvEntry::One(template)) = command.argv.first() else { return None };
    let [Piece::Literal(program)] = template.pieces.as_slice() else { return None };
    let bare = !program.contains('/') && !command.env.contains_key("PATH");
    (bare || program.starts_with('/')).then_some(program)
}

//! The promises of SECURITY.md, and whether each holds on this machine with these settings.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolcrib::manifest::lock::LockMode;
use toolcrib::settings::Config;
use toolcrib_sandbox::KillRung;

use super::machine::Machine;
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};

/// The text and order of SECURITY.md.
const PROMISES: [&str; 12] = [
    "No built-in file tool reads, writes, lists, deletes or tests anything outside its \
     project, even while other programs rename things in it.",
    "No file tool waits for a special file or returns more than its stated limit.",
    "Code that `execute_python` runs at `strict` and `standard` opens no file outside its \
     own installation, starts no process, uses no socket and sees nothing of the server's \
     environment. Where the kernel cannot enforce that, the call is refused.",
    "One second after a call of a confined program has ended, no process of it is alive, \
     however it ended.",
    "No value of a call passes through a shell on its way to a program that a manifest names. None \
     chooses a program, becomes code of a known program, or becomes an option that the manifest did \
     not declare.",
    "Tools that send requests connect to no loopback, private, link-local, multicast, \
     reserved or metadata address that their manifest does not list. Redirects and DNS \
     changes are covered.",
    "Servers listen on loopback, check Host and Origin, and require a bearer token.",
    "The name of a tool cannot be taken over while the process lives, nor across restarts \
     where the lock is enforced. An imported tool whose definition has changed is disabled \
     until an operator accepts exactly the definition that was shown.",
    "Configured secrets are in the environment of no program whose manifest does not name \
     them, and are out of reach of other programs of the server's user. Their values, and \
     the server's own tokens, are masked in results, logs, metrics, errors, the audit log \
     and approvals, before anything is cut.",
    "Nothing that a tool of the server does can change what the server runs: the config, \
     manifests, lock, state, audit log and secret files, the server's own program and its \
     helper, and every file that a declaration runs. Together these are called the control \
     plane.",
    "A caller without the right to approve is never asked. What was approved (tool, \
     arguments, injected values, identity) is what runs, once.",
    "No request holds a processor for longer than its size warrants, and no client uses up \
     what another needs.",
];

/// Whether a promise holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromiseState {
    Holds,
    InPart,
    DoesNotHold,
    /// The settings that it depends on cannot be used.
    Unknown,
}

impl PromiseState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::InPart => "holds_in_part",
            Self::DoesNotHold => "does_not_hold",
            Self::Unknown => "unknown",
        }
    }
}

/// One promise, as it holds here.
#[derive(Debug)]
pub(super) struct Promise {
    number: usize,
    text: &'static str,
    stands: PromiseState,
    /// Why it does not hold or holds in part, or what it costs.
    why: Vec<String>,
}

impl Promise {
    fn downgrade_to(&mut self, stands: PromiseState, why: impl Into<String>) {
        if self.stands == PromiseState::Holds || stands == PromiseState::DoesNotHold {
            self.stands = stands;
        }
        self.why.push(why.into());
    }

    pub(super) fn to_value(&self) -> Value {
        json!({
            "number": self.number,
            "promise": self.text,
            "stands": self.stands.as_str(),
            "why": self.why,
        })
    }
}

/// The state of all promises; those that depend on unusable settings are unknown.
pub(super) fn promises(machine: &Machine, config: Option<&Config>) -> Vec<Promise> {
    let promise = |(index, text)| {
        let (stands, why) = (PromiseState::Holds, Vec::new());
        Promise { number: index + 1, text, stands, why }
    };
    let mut promises: Vec<Promise> = PROMISES.into_iter().enumerate().map(promise).collect();
    if let [_, _, python, ends, _, _, servers, names, secrets, plane, _, fairness] =
        promises.as_mut_slice()
    {
        code(machine, python);
        ending(machine, ends);
        match config {
            Some(config) => {
                listening(config, servers);
                naming(config, names);
                hiding(config, secrets);
                withholding(config, plane);
            }
            None => {
                for promise in [servers, names, &mut *secrets, plane] {
                    promise.downgrade_to(PromiseState::Unknown, "the settings cannot be used");
                }
            }
        }
        fairness.downgrade_to(
            PromiseState::InPart,
            "while many clients are at their bounds of stored runs, answers and outputs, a new client gets a \
             tenth of its share",
        );
        if !machine.closes_to_others {
            secrets.downgrade_to(
                PromiseState::InPart,
                "on this system the server cannot protect its memory from other programs of its user",
            );
        }
        if machine.is_root {
            secrets.downgrade_to(
                PromiseState::InPart,
                "the server would run as root, and trusted programs as root can inspect any process",
            );
        }
    }
    promises
}

fn code(machine: &Machine, promise: &mut Promise) {
    match &machine.pure {
        Ok(enforced) if enforced.is_complete() => {}
        Ok(enforced) => {
            let missing = enforced.missing.join("; ");
            promise.why.push(format!("every call is refused here: {missing}"));
        }
        Err(error) => promise.why.push(format!("every call is refused here: {error}")),
    }
}

fn ending(machine: &Machine, promise: &mut Promise) {
    match &machine.workspace {
        _ if !machine.holds_processes => promise.downgrade_to(
            PromiseState::DoesNotHold,
            "this kernel has no usable pidfds: a process id may have been reused",
        ),
        Ok(enforced) if enforced.processes == KillRung::ProcessGroup => promise.downgrade_to(
            PromiseState::InPart,
            "processes that leave their group are not found: there are no PID namespaces and no control \
             groups for this user, and no /proc",
        ),
        Ok(_) => {}
        Err(error) => promise.why.push(format!("no confined program is started here: {error}")),
    }
}

fn listening(config: &Config, promise: &mut Promise) {
    let server = &config.server;
    if !server.listen.is_local() {
        let why = format!("`server.listen` is {}, which other machines can reach", server.listen);
        promise.downgrade_to(PromiseState::InPart, why);
    }
    if server.no_auth {
        promise.downgrade_to(PromiseState::InPart, "`server.no_auth` is set: no token is required");
    }
}

fn naming(config: &Config, promise: &mut Promise) {
    let said = match config.registry.lock {
        LockMode::Enforce => return,
        LockMode::Warn => {
            "`registry.lock` is `warn`: changes across a restart are reported but not blocked"
        }
        LockMode::Off => {
            "`registry.lock` is `off`: after a restart, a contested name goes to the first source in sort order"
        }
    };
    promise.downgrade_to(PromiseState::InPart, said);
}

fn hiding(config: &Config, promise: &mut Promise) {
    match config.mask() {
        Ok(mask) if !mask.ignored().is_empty() => promise.downgrade_to(
            PromiseState::InPart,
            "secrets of less than 4 bytes are not masked, and at least one is that short",
        ),
        Ok(_) => {}
        Err(error) => {
            promise.downgrade_to(PromiseState::DoesNotHold, format!("{error}, so nothing starts"));
        }
    }
}

fn withholding(config: &Config, promise: &mut Promise) {
    if !config.manifests.trusted.is_empty() {
        let why = "`manifests.trusted` names programs with the server's own rights: they can change anything";
        promise.downgrade_to(PromiseState::InPart, why);
    }
}

/// The column in which the text of a promise starts.
const INDENT: usize = 19;

/// All promises, one paragraph each.
pub(super) fn page(promises: &[Promise], page: &mut String) {
    let _ = writeln!(page, "{STRONG}Promises{STRONG:#}");
    for promise in promises {
        let word = match promise.stands {
            PromiseState::Holds => "holds".to_owned(),
            PromiseState::InPart => format!("{WARNING}holds in part{WARNING:#}"),
            PromiseState::DoesNotHold => format!("{ERROR}does not hold{ERROR:#}"),
            PromiseState::Unknown => format!("{FAINT}unknown{FAINT:#}"),
        };
        let shown = match promise.stands {
            PromiseState::Holds => 5,
            PromiseState::Unknown => 7,
            PromiseState::InPart | PromiseState::DoesNotHold => 13,
        };
        let blank = INDENT - 5 - shown;
        let text = screen::folded(promise.text, INDENT, INDENT);
        let _ = writeln!(page, "  {:>2} {word}{:blank$}{text}", promise.number, "");
        for why in &promise.why {
            let why = screen::folded(why, INDENT, INDENT);
            let _ = writeln!(page, "{:INDENT$}{FAINT}{why}{FAINT:#}", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Findings, machine};
    use super::*;

    #[test]
    fn without_programs_only_secret_promises_are_weakened() {
        let mut findings = Findings::default();
        let mut machine = machine::without_programs(&mut findings);
        machine.is_root = false;
        let config = Config::default();
        let stood = promises(&machine, Some(&config));
        let fallen: Vec<_> =
            stood.iter().filter(|promise| promise.stands != PromiseState::Holds).collect();
        let numbers: Vec<_> = fallen.iter().map(|promise| promise.number).collect();
        assert_eq!(numbers, [8, 9, 12], "the lock only warns, and a process is open to others");
        for number in [3, 4] {
            let why = stood[number - 1].why.concat();
            assert!(why.contains("no program is started on this system"), "{why}");
        }
        assert!(findings.list.iter().any(|finding| finding.about == "programs"));
    }
}

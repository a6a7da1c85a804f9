//! The helper's messages: one report when the program starts, and short messages about its end.

use std::fmt::Write as _;
use std::io;

/// The step of the helper that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HelperStep {
    /// Setting up the mechanism that holds the tree together.
    Rung,
    /// Building a part of the jail that the kernel supports.
    Jail,
    /// Entering the working directory.
    Directory,
    /// Loading the program.
    Execute,
}

impl HelperStep {
    const ALL: [Self; 4] = [Self::Rung, Self::Jail, Self::Directory, Self::Execute];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Rung => "rung",
            Self::Jail => "jail",
            Self::Directory => "directory",
            Self::Execute => "execute",
        }
    }
}

/// The jail as it was built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BuiltJail {
    /// The version of Landlock in force.
    pub(crate) landlock: Option<u32>,
    /// Whether the system call filter is in force.
    pub(crate) syscalls: bool,
    /// Whether all capabilities were dropped.
    pub(crate) privileges: bool,
    /// Whether places beneath the grants were hidden or made read-only.
    pub(crate) withheld: bool,
    /// Guarantees of the profile that the kernel does not support.
    pub(crate) missing: Vec<String>,
}

/// The result of a start, as lines of text; the report ends with the pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartReport {
    /// The program was loaded.
    Running(BuiltJail),
    /// The profile is required, and this machine lacks these guarantees. Nothing was loaded.
    Refused(Vec<String>),
    /// The program cannot be started with these grants, for this reason. Nothing was loaded.
    Impossible(String),
    /// A withheld place does not exist, and the program could create it. Nothing was loaded.
    Gone(String),
    /// Somebody replaced a place during the start. Nothing was loaded; another start may succeed.
    Replaced(String),
    /// A step failed with this number of `errno`.
    Failed(HelperStep, i32),
}

impl BuiltJail {
    /// The report that is sent before the program is loaded.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::from("built\n");
        if let Some(version) = self.landlock {
            let _ = writeln!(text, "landlock {version}");
        }
        let held = [
            (self.syscalls, "syscalls\n"),
            (self.privileges, "privileges\n"),
            (self.withheld, "withheld\n"),
        ];
        for (held, line) in held {
            text.push_str(if held { line } else { "" });
        }
        text + &clauses(&self.missing)
    }
}

fn clauses(missing: &[String]) -> String {
    missing.iter().fold(String::new(), |text, clause| text + "missing " + clause + "\n")
}

/// The report of a refusal.
pub(crate) fn refusal(missing: &[String]) -> String {
    format!("refused\n{}", clauses(missing))
}

/// The report of why a program cannot be started with its grants, on one line.
pub(crate) fn impossible(reason: &str) -> String {
    format!("impossible {reason}\n")
}

/// The report of why a missing place cannot be withheld, on one line.
pub(crate) fn gone(reason: &str) -> String {
    format!("gone {reason}\n")
}

/// The report of why a start has to be repeated, on one line.
pub(crate) fn replaced(reason: &str) -> String {
    format!("replaced {reason}\n")
}

/// The report of a failure.
pub(crate) fn failure(step: HelperStep, error: &io::Error) -> String {
    format!("failed {} {}\n", step.as_str(), error.raw_os_error().unwrap_or(libc::EIO))
}

impl StartReport {
    /// Reads a report; `None` if it is incomplete, for example because the helper was killed.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut built = None;
        let mut refused = false;
        let mut details = BuiltJail::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "built" => built = Some(()),
                "refused" => refused = true,
                "landlock" => details.landlock = Some(rest.parse().ok()?),
                "syscalls" => details.syscalls = true,
                "privileges" => details.privileges = true,
                "withheld" => details.withheld = true,
                "impossible" => return Some(Self::Impossible(rest.to_owned())),
                "gone" => return Some(Self::Gone(rest.to_owned())),
                "replaced" => return Some(Self::Replaced(rest.to_owned())),
                "missing" => details.missing.push(rest.to_owned()),
                "failed" => {
                    let (step, number) = rest.split_once(' ')?;
                    let step = HelperStep::ALL.into_iter().find(|known| known.as_str() == step)?;
                    return Some(Self::Failed(step, number.parse().ok()?));
                }
                _ => return None,
            }
        }
        if refused {
            return Some(Self::Refused(details.missing));
        }
        built.map(|()| Self::Running(details))
    }
}

/// A message about the program's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeMessage {
    /// The program has ended.
    Ended {
        /// Its exit code, or the negated number of its signal.
        code: i32,
        /// Whether other processes of the tree are still running. If none is, the helper ends too.
        lingering: bool,
    },
    /// Every process that could be found was killed; the helper ends.
    Done {
        /// The number of processes other than the program.
        killed: usize,
        /// Whether the kernel confirms that no process is left.
        complete: bool,
    },
}

/// The length of every message.
pub(crate) const MESSAGE: usize = 9;

impl TreeMessage {
    /// Encodes the message.
    pub(crate) fn to_bytes(self) -> [u8; MESSAGE] {
        let (tag, number, flag) = match self {
            Self::Ended { code, lingering } => (b'E', i64::from(code), lingering),
            Self::Done { killed, complete } => {
                (b'D', i64::try_from(killed).unwrap_or(i64::MAX), complete)
            }
        };
        let mut bytes = [0; MESSAGE];
        bytes[..8].copy_from_slice(&(number << 1 | i64::from(flag)).to_le_bytes());
        bytes[8] = tag;
        bytes
    }

    /// Decodes a message.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, [tag]) = bytes.split_first_chunk::<8>()? else { return None };
        let number = i64::from_le_bytes(*number);
        let flag = number & 1 == 1;
        let number = number >> 1;
        match tag {
            b'E' => Some(Self::Ended { code: i32::try_from(number).ok()?, lingering: flag }),
            b'D' => Some(Self::Done { killed: usize::try_from(number).ok()?, complete: flag }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        let built = BuiltJail {
            landlock: Some(7),
            syscalls: true,
            privileges: false,
            withheld: true,
            missing: vec!["files: no Landlock".to_owned(), "x".to_owned()],
        };
        let lacks = built.missing.clone();
        assert_eq!(StartReport::from_text(&refusal(&lacks)), Some(StartReport::Refused(lacks)));
        assert_eq!(StartReport::from_text(&built.to_text()), Some(StartReport::Running(built)));
        let reason = StartReport::Impossible("`/x y` is: not".to_owned());
        assert_eq!(StartReport::from_text(&impossible("`/x y` is: not")), Some(reason));
        let reason = StartReport::Replaced("`/x y` cannot be".to_owned());
        assert_eq!(StartReport::from_text(&replaced("`/x y` cannot be")), Some(reason));
        let reason = StartReport::Gone("`/x y` does not exist".to_owned());
        assert_eq!(StartReport::from_text(&gone("`/x y` does not exist")), Some(reason));
        for step in HelperStep::ALL {
            let text = failure(step, &io::Error::from_raw_os_error(libc::EPERM));
            assert_eq!(StartReport::from_text(&text), Some(StartReport::Failed(step, libc::EPERM)));
        }
    }

    #[test]
    fn a_failure_to_load_the_program_comes_after_the_jail_was_built() {
        let text = BuiltJail::default().to_text()
            + &failure(HelperStep::Execute, &io::Error::from_raw_os_error(libc::ENOEXEC));
        assert_eq!(
            StartReport::from_text(&text),
            Some(StartReport::Failed(HelperStep::Execute, libc::ENOEXEC))
        );
    }

    #[test]
    fn silence_is_no_report() {
        assert_eq!(StartReport::from_text(""), None);
        assert_eq!(StartReport::from_text("noise\n"), None);
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        for message in [
            TreeMessage::Ended { code: 0, lingering: false },
            TreeMessage::Ended { code: -9, lingering: true },
            TreeMessage::Ended { code: 255, lingering: true },
            TreeMessage::Done { killed: 0, complete: true },
            TreeMessage::Done { killed: 70_000, complete: false },
        ] {
            assert_eq!(TreeMessage::from_bytes(&message.to_bytes()), Some(message));
        }
        assert_eq!(TreeMessage::from_bytes(b""), None);
    }
}

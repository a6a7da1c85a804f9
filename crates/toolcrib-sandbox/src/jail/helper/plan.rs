//! The helper's plan, passed as its argument vector, so that it needs no parser and `ps` shows it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::{KillRung, Limits, Profile, Require};

/// The helper's name in its own argument vector, by which it recognizes itself.
pub(crate) const NAME: &str = "toolcrib-jail";
/// Both sides have the same version: the plan is not a public interface.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The argument after the version that makes a helper report whether it could withhold places.
pub(crate) const PROBE: &str = "probe";

/// The kind of access to a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading.
    Read,
    /// Reading and executing.
    Run,
    /// Reading, executing and changing, but not creating devices.
    Write,
}

impl Access {
    const ALL: [Self; 3] = [Self::Read, Self::Run, Self::Write];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Write => "write",
        }
    }
}

/// A kernel feature that tests can disable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelFeature {
    Landlock,
    Seccomp,
    Namespaces,
    Cgroups,
    Procfs,
}

impl KernelFeature {
    pub(crate) const ALL: [Self; 5] =
        [Self::Landlock, Self::Seccomp, Self::Namespaces, Self::Cgroups, Self::Procfs];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Namespaces => "namespaces",
            Self::Cgroups => "cgroups",
            Self::Procfs => "procfs",
        }
    }
}

/// The jail of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) profile: Profile,
    pub(crate) require: Require,
    pub(crate) rung: KillRung,
    pub(crate) limits: Limits,
    pub(crate) grants: Vec<(Access, PathBuf)>,
    /// The places withheld from the program, as in [`Confinement`](crate::Confinement).
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Granted folders of this program alone, which stay visible in a hidden place: its scratch
    /// directory and its kept HOME.
    pub(crate) own: Vec<PathBuf>,
    /// The folders in which programs may replace links, whether or not this program may write
    /// there.
    pub(crate) workspace: Option<PathBuf>,
    /// The working directory; without it, the helper's.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) without: Vec<KernelFeature>,
}

impl Plan {
    /// The argument vector up to the program's file, which follows with its own vector.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![
            NAME.into(),
            VERSION.into(),
            self.profile.as_str().into(),
            self.require.as_str().into(),
            self.rung.as_str().into(),
        ];
        let limits = &self.limits;
        let cpu = limits.cpu.map(|cpu| cpu.as_secs() + u64::from(cpu.subsec_nanos() > 0));
        let numbers = [
            ("memory", limits.memory),
            ("file_size", limits.file_size),
            ("open_files", limits.open_files),
            ("cpu", cpu),
            ("processes", limits.processes.map(u64::from)),
        ];
        for (key, number) in numbers {
            arguments.extend(number.map(|number| OsString::from(format!("{key}={number}"))));
        }
        for (access, path) in &self.grants {
            let mut argument = OsString::from(access.as_str());
            argument.push("=");
            argument.push(path);
            arguments.push(argument);
        }
        let places = self.hidden.iter().map(|path| ("hidden=", path));
        let places = places.chain(self.read_only.iter().map(|path| ("read_only=", path)));
        let places = places.chain(self.own.iter().map(|path| ("own=", path)));
        let places = places.chain(self.workspace.iter().map(|path| ("workspace=", path)));
        let places = places.chain(self.directory.iter().map(|path| ("directory=", path)));
        for (key, path) in places {
            let mut argument = OsString::from(key);
            argument.push(path);
            arguments.push(argument);
        }
        arguments.extend(
            self.without.iter().map(|facility| format!("without={}", facility.as_str()).into()),
        );
        arguments.push("--".into());
        arguments
    }

    /// Reads the plan from an argument vector, and returns it with the remaining arguments; `None`
    /// if it is not a plan of this version.
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = OsString>,
    ) -> Option<(Self, Vec<OsString>)> {
        let _name = arguments.next()?;
        if arguments.next()? != VERSION {
            return None;
        }
        let profile = arguments.next()?.to_str()?.parse().ok()?;
        let require = arguments.next()?;
        let require = [Require::BestEffort, Require::Required]
            .into_iter()
            .find(|known| require == known.as_str())?;
        let rung = arguments.next()?;
        let rung = KillRung::ALL.into_iter().find(|known| rung == known.as_str())?;
        let mut plan = Self {
            profile,
            require,
            rung,
            limits: Limits::of(Profile::Trusted),
            grants: Vec::new(),
            hidden: Vec::new(),
            read_only: Vec::new(),
            own: Vec::new(),
            workspace: None,
            directory: None,
            without: Vec::new(),
        };
        loop {
            let argument = arguments.next()?;
            if argument == "--" {
                return Some((plan, arguments.collect()));
            }
            plan.take(&argument)?;
        }
    }

    fn take(&mut self, argument: &OsStr) -> Option<()> {
        let bytes = argument.as_bytes();
        let middle = bytes.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (std::str::from_utf8(&bytes[..middle]).ok()?, &bytes[middle + 1..]);
        if let Some(access) = Access::ALL.into_iter().find(|access| key == access.as_str()) {
            self.grants.push((access, OsString::from_vec(value.to_vec()).into()));
            return Some(());
        }
        let path = || PathBuf::from(OsString::from_vec(value.to_vec()));
        match key {
            "hidden" => self.hidden.push(path()),
            "read_only" => self.read_only.push(path()),
            "own" => self.own.push(path()),
            "workspace" => self.workspace = Some(path()),
            "directory" => self.directory = Some(path()),
            _ => return self.take_text(key, std::str::from_utf8(value).ok()?),
        }
        Some(())
    }

    fn take_text(&mut self, key: &str, value: &str) -> Option<()> {
        if key == "without" {
            let known = KernelFeature::ALL.into_iter().find(|facility| value == facility.as_str());
            self.without.push(known?);
            return Some(());
        }
        let number: u64 = value.parse().ok()?;
        match key {
            "memory" => self.limits.memory = Some(number),
            "file_size" => self.limits.file_size = Some(number),
            "open_files" => self.limits.open_files = Some(number),
            "cpu" => self.limits.cpu = Some(Duration::from_secs(number)),
            "processes" => self.limits.processes = Some(u32::try_from(number).ok()?),
            _ => return None,
        }
        Some(())
    }

    /// Whether tests treat the kernel as lacking this feature.
    pub(crate) fn lacks(&self, facility: KernelFeature) -> bool {
        self.without.contains(&facility)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plans() -> impl Strategy<Value = Plan> {
        let limits = (
            any::<Option<u64>>(),
            any::<Option<u64>>(),
            any::<Option<u32>>(),
            any::<Option<u32>>(),
        );
        let limits = limits.prop_map(|(memory, file_size, cpu, processes)| Limits {
            memory,
            file_size,
            open_files: memory,
            cpu: cpu.map(|cpu| Duration::from_secs(u64::from(cpu))),
            processes,
        });
        let path = prop::collection::vec(1_u8..=255, 0..12)
            .prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)));
        let grant = (prop::sample::select(Access::ALL.to_vec()), path.clone());
        let places = (
            prop::collection::vec(path.clone(), 0..3),
            prop::collection::vec(path.clone(), 0..3),
            prop::collection::vec(path.clone(), 0..3),
            prop::option::of(path.clone()),
            prop::option::of(path),
        );
        let fixed = (
            prop::sample::select(Profile::ALL.to_vec()),
            prop::sample::select(vec![Require::BestEffort, Require::Required]),
            prop::sample::select(KillRung::ALL.to_vec()),
        );
        let lists = (
            prop::collection::vec(grant, 0..5),
            prop::sample::subsequence(KernelFeature::ALL.to_vec(), 0..=5),
        );
        (fixed, limits, lists, places).prop_map(|(fixed, limits, (grants, without), places)| {
            let (profile, require, rung) = fixed;
            let (hidden, read_only, own, workspace, directory) = places;
            Plan {
                profile,
                require,
                rung,
                limits,
                grants,
                hidden,
                read_only,
                own,
                workspace,
                directory,
                without,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_plan_arrives_as_it_was_sent(
            plan in plans(),
            rest in prop::collection::vec("[ -~]{0,8}", 0..4),
        ) {
            let rest: Vec<OsString> = rest.into_iter().map(OsString::from).collect();
            let sent = plan.to_arguments().into_iter().chain(rest.iter().cloned());
            prop_assert_eq!(Plan::from_arguments(sent), Some((plan, rest)));
        }

        #[test]
        fn whatever_else_arrives_is_no_panic(
            arguments in prop::collection::vec("[a-z+=0-9/-]{0,12}", 0..12),
        ) {
            let _ = Plan::from_arguments(arguments.into_iter().map(OsString::from));
        }
    }
}

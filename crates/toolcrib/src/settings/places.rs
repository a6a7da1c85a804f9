//! Settings of places: where manifests are, where commands run, where things are kept.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::stores::SyslogAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolcrib_core::audit::AuditArguments;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_tool::units::{OrNone, SizeLimit, TimeLimit, or_none};

/// Where manifests are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Manifests {
    /// Directories whose `*.yaml`, `*.yml` and `*.toml` files are read, in this order; relative to
    /// the config file.
    pub dirs: Vec<PathBuf>,
    /// Manifests and single tools or MCP servers (`unit` or `unit:name`, the unit's path relative to
    /// the config file: `tools.d/services.yaml:restart`) that may use profile `trusted`, and grants
    /// that reach the home folder or a place of credentials. Without this, `toolcrib trust` or an
    /// enforced lock, such tools are unavailable.
    pub trusted: Vec<String>,
    /// Whether servers follow the files: what is saved is live a moment later. Without it they read
    /// them again when they get SIGHUP.
    pub watch: bool,
    /// Whether it is no mistake if a directory is not there: nobody has asked for it. Servers see it
    /// come.
    #[serde(skip)]
    #[schemars(skip)]
    pub may_be_missing: bool,
}

impl Default for Manifests {
    fn default() -> Self {
        Self {
            dirs: vec!["tools.d".into()],
            trusted: Vec::new(),
            watch: true,
            may_be_missing: false,
        }
    }
}

impl Manifests {
    /// The directories that are not there and that nobody asked for.
    pub fn absent(&self) -> Vec<&PathBuf> {
        self.dirs.iter().filter(|dir| self.may_be_missing && !dir.exists()).collect()
    }
}

/// Where commands run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workspace {
    /// The working directory of command tools that name none, and of file tools; relative to the config
    /// file. It is made when a call may need it. Tools may write to all of it but the control plane, so
    /// that it is best a folder without settings, manifests and scripts.
    pub root: PathBuf,
}

impl Default for Workspace {
    fn default() -> Self {
        Self { root: "workspace".into() }
    }
}

/// Where the program keeps what outlives it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// A folder of its owner's alone (mode 0700), made when it is first needed; relative to the config
    /// file. Long outputs, suspended calls, runs, pins, what `toolcrib trust` recorded and answers under
    /// an `Idempotency-Key` are kept in it, and survive a restart. Default: `$STATE_DIRECTORY`, which
    /// systemd sets, else a folder for this config in `$XDG_STATE_HOME/toolcrib`, which usually is
    /// `~/.local/state/toolcrib`. `none`: everything is kept in memory.
    pub dir: Option<PathBuf>,
    /// The folder in which upstreams with `keep_home` have their HOMEs; relative to the config file.
    /// Default: `homes` in `$CACHE_DIRECTORY`, which systemd sets, else a folder beside `state.dir` whose name
    /// ends in `-homes`.
    pub homes: Option<PathBuf>,
    /// How long things are kept, and how much of them. What waits for somebody or runs is always kept.
    pub keep: Keep,
    /// Whether nobody named the folder: then a program that cannot write to it does without.
    #[serde(skip)]
    #[schemars(skip)]
    pub is_default: bool,
    /// The folder that this config has by default where no service manager names one. A server with another
    /// folder leaves a link to its socket in it, by which commands find the server.
    #[serde(skip)]
    #[schemars(skip)]
    pub users_default: Option<PathBuf>,
}

/// How long the things in the state folder are kept, and how much of them; `limits.per_client` says how much
/// one client may keep. Values take effect on a reload: a shorter age for everything at once, a longer one for what
/// is stored from then on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Keep {
    /// Runs that are over, with their transcripts; the age counts from the last change.
    pub runs: KeepRuns,
    /// Outputs that were too long for their answers, which `read_output` reads.
    pub outputs: KeepOutputs,
    /// The lifetime of an `Idempotency-Key`: a request that is repeated later is a new one. `none`: for ever.
    pub answers: TimeLimit,
    /// Outcomes of calls that somebody else decided on, who decided, and waiting calls that have expired.
    /// `none`: for ever.
    pub decisions: TimeLimit,
}

/// How long runs that are over are kept, and how much of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepRuns {
    /// For how long; `none` for as long as there is room.
    pub age: TimeLimit,
    /// Bytes of all clients together; beyond it the oldest of the client that uses most are removed. `none`:
    /// only the limits of each client hold.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<SizeLimit>")]
    pub max_bytes: Option<SizeLimit>,
}

/// How long long outputs are kept, and how much of them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepOutputs {
    /// For how long; `none` for as long as there is room.
    pub age: TimeLimit,
    /// Bytes of all clients together; beyond it the oldest of the client that uses most are removed. `none`:
    /// four times what `limits.per_client.spill_bytes` allows one client.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<SizeLimit>")]
    pub max_bytes: Option<SizeLimit>,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Keep {
    fn default() -> Self {
        let day = TimeLimit(Some(DAY));
        Self {
            runs: KeepRuns::default(),
            outputs: KeepOutputs::default(),
            answers: day,
            decisions: day,
        }
    }
}

impl Default for KeepRuns {
    fn default() -> Self {
        Self { age: TimeLimit(Some(7 * DAY)), max_bytes: Some(SizeLimit(1 << 30)) }
    }
}

impl Default for KeepOutputs {
    fn default() -> Self {
        Self { age: TimeLimit(Some(DAY)), max_bytes: None }
    }
}

#[cfg(feature = "store")]
impl Keep {
    /// The same for the store.
    pub(crate) fn retention(&self) -> crate::stores::Retention {
        use crate::stores::{Kept, Retention};

        let bytes = |limit: Option<SizeLimit>| limit.map(|SizeLimit(bytes)| bytes);
        let mut retention = Retention::default();
        retention.runs = Kept::new(self.runs.age.0, bytes(self.runs.max_bytes));
        retention.outputs = Kept::new(self.outputs.age.0, bytes(self.outputs.max_bytes));
        retention.answers = self.answers.0;
        retention.decisions = self.decisions.0;
        retention
    }
}

/// The word for no folder.
pub(super) fn is_none(dir: &Path) -> bool {
    dir == Path::new("none")
}

impl State {
    /// Whether the config says `none`.
    pub(super) fn says_none(&self) -> bool {
        self.dir.as_deref().is_some_and(is_none)
    }
}

/// The folder for state of programs, as the environment has it.
#[derive(Debug, Clone, Default)]
pub(super) struct StateHome {
    service: Option<PathBuf>,
    user: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl StateHome {
    /// Takes a variable that says where state is kept.
    pub(super) fn take(&mut self, name: &str, value: &OsStr) {
        let path = || Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        match name {
            // systemd sets several, separated by colons, where a unit names several.
            "STATE_DIRECTORY" => {
                let first = value.to_str().and_then(|list| list.split(':').next());
                self.service = first.map(PathBuf::from).filter(|path| path.is_absolute());
            }
            "XDG_STATE_HOME" => self.user = path(),
            "HOME" => self.home = path().filter(|home| home != Path::new("/")),
            _ => {}
        }
    }

    /// The default state folder of a config; none where the environment names no place.
    pub(super) fn folder(&self, config: Option<&Path>) -> Option<PathBuf> {
        self.service.clone().or_else(|| self.users_folder(config))
    }

    /// The variable that decides the default folder; none where that is the home folder.
    pub(super) fn variable(&self) -> Option<&'static str> {
        match (&self.service, &self.user) {
            (Some(_), _) => Some("STATE_DIRECTORY"),
            (None, Some(_)) => Some("XDG_STATE_HOME"),
            (None, None) => None,
        }
    }

    /// The default state folder of a config, whatever a service manager says.
    pub(super) fn users_folder(&self, config: Option<&Path>) -> Option<PathBuf> {
        let user = self.user.clone();
        let user = user.or_else(|| Some(self.home.as_ref()?.join(".local/state")))?;
        // Without a file, that of the first one that could come to be here.
        let config = std::path::absolute(config.unwrap_or(Path::new("config.yml"))).ok()?;
        let folder = config.parent()?;
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let name = folder.file_name().and_then(OsStr::to_str).unwrap_or("root");
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().take(NAME_CHARS).map(plain).collect();
        let identity = folder.join(config.file_name()?);
        let digest = Fingerprint::of_json(&json!(identity.to_string_lossy())).to_string();
        let digest = digest.get(..DIGITS).unwrap_or(&digest);
        Some(user.join("toolcrib").join(format!("{name}-{digest}")))
    }
}

/// Characters of a config folder's name in the name of its state folder; the rest is a digest. Both
/// are short: paths of sockets in it are at most 107 bytes long.
const NAME_CHARS: usize = 20;
const DIGITS: usize = 12;

/// The audit log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-scalar" = "write the file as `audit: {file: audit.jsonl}`"))]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// The file to which every call is appended as a line of JSON (mode 0600); relative to the config
    /// file. `none`: there is no audit log.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<PathBuf>")]
    pub file: Option<PathBuf>,
    /// What is said of a call's arguments.
    pub arguments: AuditArguments,
    /// How long the file may become before it is moved aside, to the same name with `.1`, and a new one
    /// is begun. `none`: never; another program may move it at any time.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<SizeLimit>")]
    pub max_bytes: Option<SizeLimit>,
    /// Files that were moved aside and are kept: `.1`, the newest, to this number.
    #[schemars(range(min = 1))]
    pub keep: u32,
    /// How long records are kept in files. With an age, the file is also moved aside when its first record is
    /// older than this age divided by `keep`, and files whose last record is older than the age are removed.
    /// `none`: as many files as `keep` says.
    pub max_age: TimeLimit,
    /// Where every record is sent as well, as a message of syslog (RFC 5424): the path of a Unix datagram socket
    /// such as `/dev/log`, relative to the config file, or `udp://HOST:PORT` or `tcp://HOST:PORT`. `none`:
    /// nowhere.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<SyslogAddress>")]
    pub syslog: Option<SyslogAddress>,
    /// Whether every record is sent as well to the OpenTelemetry collector that the environment variable
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` names, as a log record. Requires a binary with the feature `otlp`.
    pub otlp: bool,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            file: None,
            arguments: AuditArguments::default(),
            max_bytes: None,
            keep: 5,
            max_age: TimeLimit(None),
            syslog: None,
            otlp: false,
        }
    }
}

#[cfg(unix)]
impl Audit {
    /// When the file is moved aside.
    pub(crate) fn rotation(&self) -> crate::stores::Rotation {
        let Self { max_bytes, keep, max_age, .. } = self;
        crate::stores::Rotation {
            max_bytes: max_bytes.map(|SizeLimit(bytes)| bytes),
            keep: *keep,
            max_age: max_age.0,
        }
    }

    /// Whether this program moves the file aside.
    pub(crate) fn rotates(&self) -> bool {
        self.max_bytes.is_some() || self.max_age.0.is_some()
    }
}

impl crate::settings::Config {
    /// The folder with the kept HOMEs of upstreams, or why there is none, as a clause.
    pub(crate) fn homes_folder(&self) -> Result<PathBuf, String> {
        let beside = || {
            let state = self.state.dir.as_ref()?;
            let mut name = state.file_name()?.to_owned();
            name.push("-homes");
            Some(state.with_file_name(name))
        };
        let cache = || Some(PathBuf::from(std::env::var_os("CACHE_DIRECTORY")?).join("homes"));
        let homes = self.state.homes.clone().or_else(cache).or_else(beside).ok_or_else(|| {
            "the config has no folder for that: set `state.dir` or `state.homes`".to_owned()
        })?;
        let homes = std::path::absolute(&homes).unwrap_or(homes);
        // What other tools may change must not decide what this server runs.
        let shared = self.working_folders().into_iter().find(|folder| {
            std::path::absolute(folder).is_ok_and(|folder| homes.starts_with(folder))
        });
        match shared {
            None => Ok(homes),
            Some(folder) => Err(format!(
                "`{}` is inside `{}`, where tools work: set `state.homes` to another folder",
                homes.display(),
                folder.display()
            )),
        }
    }
}

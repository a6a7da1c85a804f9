//! `toolcrib trust UNIT[:TOOL]`: trusts declarations that may do more than the workspace allows.

pub(crate) mod report;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use toolcrib::manifest::declaration::{
    Declaration, PromptDeclaration, ResourceDeclaration, UpstreamDeclaration,
};
use toolcrib::manifest::lock::Kind;
use toolcrib::runners::{
    RunnerHost, Secrets, TrustDecision, prompt_trust_decision, prompt_wants,
    resource_trust_decision, resource_wants, tool_trust_decision, tool_wants,
    upstream_trust_decision, upstream_wants,
};
use toolcrib::servers::{SocketFolder, running_servers};
use toolcrib::settings::Config;
use toolcrib::stores::StateDir;
use toolcrib::tool::{fully_visible, fully_visible_text};
use toolcrib::trust::{TrustKeeper, TrustRecord, TrustedDeclaration, trusted};

use crate::command::manifests::trust::report::TrustReport;
use crate::options::{JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::terminal_approver::is_yes;
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib trust                                       list what is not trusted yet
  toolcrib trust tools.d/services.yaml                 all tools of a manifest
  toolcrib trust tools.d/a.yaml tools.d/b.yaml         those of several
  toolcrib trust tools.d/services.yaml:restart --yes   one tool, without a question
  toolcrib trust --list
  toolcrib trust --revoke tools.d/services.yaml:restart

A manifest cannot grant itself trust. These are unavailable until you trust them: tools and MCP servers
with profile `trusted`, or with grants that reach the home folder or credentials, and resources and prompts
whose file is outside both the manifest's folder and the workspace. The record contains the digest of the
whole definition and of the files it runs: a changed definition has to be trusted again. Running servers
with the same state folder detect the change at once. The command shows everything that the digest
covers, the text of scripts (secrets by name), and what has changed since you last trusted it.
`manifests.trusted` in the config trusts a manifest or a tool whatever its content.")]
pub(crate) struct TrustOptions {
    /// Manifests, as `list --all` shows them, each optionally with one tool, MCP server, prompt or resource
    /// [default: list what is not trusted yet]
    #[arg(value_name = "UNIT[:TOOL]", conflicts_with = "list")]
    units: Vec<String>,
    /// Do not ask for confirmation
    #[arg(short, long, conflicts_with_all = ["list", "revoke"], requires = "units")]
    yes: bool,
    /// List what is trusted
    #[arg(long)]
    list: bool,
    /// Revoke the trust
    #[arg(long, conflicts_with = "list", requires = "units")]
    revoke: bool,
    #[command(flatten)]
    output: JsonOutput,
}

/// A declaration that needs the operator's trust.
struct Candidate {
    record: TrustedDeclaration,
    /// The name to give on the command line, with invisible characters escaped.
    label: String,
    wants: Vec<String>,
    /// What it says and runs, line by line.
    shown: TrustReport,
    /// What it could do when it was last trusted, if it ever was.
    before: Option<EarlierTrust>,
    /// Whether it is already trusted.
    is_vouched: bool,
}

impl Candidate {
    /// The manifest, as the config names it.
    fn unit(&self) -> &str {
        let name = self.label.strip_suffix(self.record.name.as_str());
        name.and_then(|unit| unit.strip_suffix(':')).unwrap_or(&self.label)
    }
}

/// A definition that was trusted under the same name before it changed.
struct EarlierTrust {
    digest: String,
    shown: Option<String>,
}

pub(in crate::command) fn run(options: &Options, own: &TrustOptions) -> anyhow::Result<Exit> {
    let loaded = startup::config(options)?;
    let place = SocketFolder::of(&loaded);
    let config = loaded.into_config();
    let keeper = TrustKeeper::of(&config);
    let record = keeper.record().context(
        "there is no state folder (`state.dir: none`), so nothing can be recorded: name the tools in \
         `manifests.trusted` of the config",
    )?;
    if own.list {
        return list(&keeper, record, own.output.json);
    }
    if own.units.is_empty() {
        return list_open(&config, &keeper, own.output.json);
    }
    if let Ok(place) = &place {
        servers_have_this_state(place, config.state.dir.as_deref())?;
    }
    if own.revoke {
        return revoke(&config, record, &own.units, own.output.json);
    }
    let candidates = candidates(&config, &keeper, &own.units)?;
    let open: Vec<&Candidate> = candidates.iter().filter(|one| !one.is_vouched).collect();
    if open.is_empty() {
        let names: Vec<_> = candidates.iter().map(|one| one.label.as_str()).collect();
        if own.output.json {
            screen::json(&json!({"trusted": [], "already": names}))?;
        } else if names.is_empty() {
            let units = own.units.join(", ");
            screen::out(format!("nothing in {units} needs the operator's trust"))?;
        } else {
            screen::out(format!("already trusted: {}", names.join(", ")))?;
        }
        return Ok(Exit::Success);
    }
    if !own.output.json || !own.yes {
        for candidate in &open {
            screen::note(page(candidate));
        }
    }
    if !own.yes && !agreed(&open)? {
        screen::note("nothing was trusted");
        return Ok(Exit::Failure);
    }
    let state = config.state.dir.as_deref().unwrap_or(Path::new(""));
    state_belongs_to_the_server(&config, state)?;
    StateDir::open(state).context("state.dir")?;
    let records = open.iter().map(|one| one.record.clone().showing(one.shown.whole().to_owned()));
    let records: Vec<TrustedDeclaration> = records.collect();
    record.add(&records)?;
    if own.output.json {
        let trusted: Vec<Value> = records.iter().map(record_json).collect();
        screen::json(&json!({ "trusted": trusted }))?;
    } else {
        for candidate in &open {
            screen::out(format!("trusted {STRONG}{}{STRONG:#}", candidate.label))?;
        }
    }
    Ok(Exit::Success)
}

/// Fails if all servers that run with this config have another state folder: they would not see the
/// record.
fn servers_have_this_state(place: &SocketFolder, state: Option<&Path>) -> anyhow::Result<()> {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let own = canonical(&state.unwrap_or(Path::new("")).join("control"));
    let servers = running_servers(place).unwrap_or_default();
    let folders: Vec<_> = servers.iter().filter_map(|one| one.socket.parent()).collect();
    match (folders.first(), state) {
        (Some(other), Some(state)) if !folders.contains(&own.as_path()) => {
            let remedy = match other.parent().filter(|_| other.ends_with("control")) {
                Some(state) => format!("repeat with `--set state.dir={}`", state.display()),
                None => {
                    "it has none: name the tools in `manifests.trusted` of the config".to_owned()
                }
            };
            bail!(
                "the server {} runs with this config but not with the state folder {}, so it would not see \
                 the record: {remedy}",
                servers.first().map(|one| one.pid).unwrap_or_default(),
                state.display()
            )
        }
        _ => Ok(()),
    }
}

/// Fails if the administrator would create the state folder of a server that runs as another user,
/// who could then not use it.
fn state_belongs_to_the_server(config: &Config, state: &Path) -> anyhow::Result<()> {
    let here = Path::new(".");
    let folder = Some(config.folder.as_path()).filter(|folder| !folder.as_os_str().is_empty());
    let (Ok(own), Ok(folder)) =
        (Path::new("/proc/self").metadata(), folder.unwrap_or(here).metadata())
    else {
        return Ok(());
    };
    if own.uid() == 0 && folder.uid() != 0 && !state.exists() {
        bail!(
            "the state folder {} does not exist, and made now it would belong to the administrator, not to \
             the user of the config: start the server first, run this command as its user, or name its \
             folder with `--set state.dir=FOLDER`",
            state.display()
        );
    }
    Ok(())
}

/// Asks at the terminal; fails without one. What is wanted stands there once more: it may have scrolled away.
fn agreed(open: &[&Candidate]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        bail!(
            "there is no terminal to ask on: look at what is shown above, and repeat with `--yes`"
        );
    }
    for one in open {
        let wants = fully_visible_text(&one.wants.join(", ")).into_owned();
        screen::ask(format!("{STRONG}{}{STRONG:#} wants {wants}\n", one.label));
    }
    let what = if open.len() == 1 { "it" } else { "all of them" };
    screen::ask(format!("Trust {what}? [y/N] "));
    Ok(is_yes(&mut io::stdin().lock())?)
}

/// A record without the displayed text.
fn record_json(record: &TrustedDeclaration) -> Value {
    let mut value = json!(record);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("shown");
    }
    value
}

/// The unit and the name of a declaration. Names of files can contain anything.
fn label(keeper: &TrustKeeper, file: &str, name: &str) -> String {
    fully_visible(&format!("{}:{name}", keeper.unit(file))).into_owned()
}

/// Describes a declaration to be trusted: what it requests, what it can do, what has changed since
/// it was last trusted, and the digest.
fn page(candidate: &Candidate) -> String {
    let mut page = format!("{WARNING}to trust{WARNING:#} {STRONG}{}{STRONG:#}\n", candidate.label);
    let _ = writeln!(page, "  wants    {}", fully_visible_text(&candidate.wants.join(", ")));
    page.push_str(candidate.shown.screen());
    let _ = writeln!(page, "  digest   {FAINT}{}{FAINT:#}", candidate.record.digest);
    if let Some(EarlierTrust { digest, shown }) = &candidate.before {
        let _ = writeln!(
            page,
            "  {WARNING}changed{WARNING:#}  since it was trusted as {FAINT}{digest}{FAINT:#}"
        );
        match shown.as_deref().map(|before| report::difference(before, candidate.shown.whole())) {
            Some(difference) if !difference.is_empty() => {
                let difference = fully_visible_text(&difference);
                let _ = writeln!(page, "{difference}");
            }
            Some(_) => {
                let _ = writeln!(
                    page,
                    "           nothing of what is shown here: a file may have changed after it was read"
                );
            }
            None => {
                let _ = writeln!(
                    page,
                    "           the earlier definition is not recorded: see the manifest"
                );
            }
        }
    }
    page
}

/// The declarations of these units, or those with these names in them, that need the operator's trust. Fails if
/// one of them does not exist.
fn candidates(
    config: &Config,
    keeper: &TrustKeeper,
    wanted: &[String],
) -> anyhow::Result<Vec<Candidate>> {
    let mut unknown: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let (found, units) = declared(config, keeper, &mut |file, name| {
        let is_named = |unit: &str| name_filter(config, file, unit).takes(name);
        unknown.retain(|unit| !is_named(unit));
        wanted.iter().any(|unit| is_named(unit))
    });
    if let Some(unit) = unknown.first() {
        bail!(
            "no manifest, and no tool of one, is named `{unit}`; there is {}",
            if units.is_empty() { "none".to_owned() } else { units.join(", ") }
        );
    }
    Ok(found)
}

/// The declarations that need the operator's trust, filtered by `wanted` on file and name, and the
/// names of all manifests in the config.
fn declared(
    config: &Config,
    keeper: &TrustKeeper,
    wanted: &mut dyn FnMut(&str, &str) -> bool,
) -> (Vec<Candidate>, Vec<String>) {
    let host = config.runner_host(Secrets::default());
    let manifests = toolcrib::manifests::Manifests::load(&config.manifests.dirs, host.clone());
    let mut found = Vec::new();
    for file in manifests.files().files.iter().filter(|file| !file.loaded.has_errors()) {
        let path = file.path.to_string_lossy();
        let tools = file.loaded.declarations.iter().map(|tool| of_tool(tool, keeper, &host));
        let servers = file.loaded.upstreams.iter().map(|one| of_upstream(one, keeper, &host));
        let prompts = file.loaded.prompts.iter().map(|one| of_prompt(one, keeper, &host));
        let resources = file.loaded.resources.iter().map(|one| of_resource(one, keeper, &host));
        for candidate in tools.chain(servers).chain(prompts).chain(resources) {
            if wanted(&path, &candidate.record.name) && !candidate.wants.is_empty() {
                found.push(candidate);
            }
        }
    }
    let files = manifests.files().files.iter();
    (found, files.map(|file| keeper.unit(&file.path.to_string_lossy())).collect())
}

/// Whether the text names a whole manifest, one name in it, or nothing.
enum NameFilter<'t> {
    All,
    One(&'t str),
    Nothing,
}

impl NameFilter<'_> {
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(own) => *own == name,
            Self::Nothing => false,
        }
    }
}

/// A unit is named relative to the config's folder or the current folder.
fn name_filter<'t>(config: &Config, file: &str, text: &'t str) -> NameFilter<'t> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = absolute(Path::new(file));
    let is_file = |unit: &str| {
        absolute(Path::new(unit)) == file || absolute(&config.folder.join(unit)) == file
    };
    if is_file(text) {
        return NameFilter::All;
    }
    // Addresses of resources contain colons, too.
    let mut parts = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    parts
        .find(|(unit, _)| is_file(unit))
        .map_or(NameFilter::Nothing, |(_, name)| NameFilter::One(name))
}

fn of_tool(tool: &Declaration, keeper: &TrustKeeper, host: &RunnerHost) -> Candidate {
    let (file, name, digest) = (&tool.origin.file, tool.definition.name(), tool.digest());
    Candidate {
        record: trusted(Kind::Tool, file, name, &digest),
        label: label(keeper, file, name),
        wants: tool_wants(tool, host),
        shown: TrustReport::of_tool(tool),
        before: before(keeper, Kind::Tool, file, name, &digest),
        is_vouched: is_vouched(tool_trust_decision(tool, &digest, host).as_ref()),
    }
}

fn of_upstream(server: &UpstreamDeclaration, keeper: &TrustKeeper, host: &RunnerHost) -> Candidate {
    let (file, name, digest) = (&server.origin.file, server.name.as_str(), server.digest());
    Candidate {
        record: trusted(Kind::Upstream, file, name, &digest),
        label: label(keeper, file, name),
        wants: upstream_wants(server, host),
        shown: TrustReport::of_upstream(server),
        before: before(keeper, Kind::Upstream, file, name, &digest),
        is_vouched: is_vouched(upstream_trust_decision(server, &digest, host).as_ref()),
    }
}

/// Files are read, but nothing is run.
fn of_prompt(prompt: &PromptDeclaration, keeper: &TrustKeeper, host: &RunnerHost) -> Candidate {
    let (file, name, digest) = (&prompt.origin.file, prompt.name.as_str(), prompt.digest());
    Candidate {
        record: trusted(Kind::Prompt, file, name, &digest),
        label: label(keeper, file, name),
        wants: prompt_wants(prompt, host),
        shown: TrustReport::of_declared(&prompt.expanded()),
        before: before(keeper, Kind::Prompt, file, name, &digest),
        is_vouched: is_vouched(prompt_trust_decision(prompt, &digest, host).as_ref()),
    }
}

/// Like [`of_prompt`].
fn of_resource(
    resource: &ResourceDeclaration,
    keeper: &TrustKeeper,
    host: &RunnerHost,
) -> Candidate {
    let (file, name, digest) = (&resource.origin.file, resource.uri.as_str(), resource.digest());
    Candidate {
        record: trusted(Kind::Resource, file, name, &digest),
        label: label(keeper, file, name),
        wants: resource_wants(resource, host),
        shown: TrustReport::of_declared(&resource.expanded()),
        before: before(keeper, Kind::Resource, file, name, &digest),
        is_vouched: is_vouched(resource_trust_decision(resource, &digest, host).as_ref()),
    }
}

/// The definition trusted under this name, if it has changed since.
fn before(
    keeper: &TrustKeeper,
    kind: Kind,
    file: &str,
    name: &str,
    digest: &str,
) -> Option<EarlierTrust> {
    let new = trusted(kind, file, name, digest);
    let known = keeper.record()?.read().unwrap_or_default();
    let same = known.into_iter().find(|own| own.is_about_the_same(&new))?;
    let TrustedDeclaration { digest, shown, .. } = same;
    (digest != new.digest).then_some(EarlierTrust { digest, shown })
}

fn is_vouched(word: Option<&TrustDecision>) -> bool {
    !matches!(word, None | Some(TrustDecision::Untrusted { .. }))
}

/// An entry of an argument vector as written in the manifest.
fn shown(entry: &Value) -> String {
    entry.as_str().map_or_else(|| entry.to_string(), str::to_owned)
}

/// Lists declarations that need the operator's trust but do not have it, with what they request.
fn list_open(config: &Config, keeper: &TrustKeeper, as_json: bool) -> anyhow::Result<Exit> {
    let (mut found, _) = declared(config, keeper, &mut |_, _| true);
    found.retain(|one| !one.is_vouched);
    if as_json {
        let record = |one: &Candidate| {
            let mut record = record_json(&one.record);
            record["wants"] = json!(one.wants);
            record
        };
        screen::json(&json!({"untrusted": found.iter().map(record).collect::<Vec<_>>()}))?;
        return Ok(Exit::Success);
    }
    // The tools of a manifest that want the same are listed once.
    let mut units: Vec<(&str, &[String], Vec<&Candidate>)> = Vec::new();
    for one in &found {
        let unit = one.unit();
        match units.iter_mut().find(|(known, wants, _)| *known == unit && **wants == *one.wants) {
            Some((.., same)) => same.push(one),
            None => units.push((unit, &one.wants, vec![one])),
        }
    }
    for (unit, wants, same) in &units {
        let wants = wants.join(", ");
        let wants = screen::folded(&fully_visible_text(&wants), 4, 4);
        let head = if let [one] = same.as_slice() {
            format!("{STRONG}{}{STRONG:#}", one.label)
        } else {
            let names: Vec<_> = same.iter().map(|one| one.record.name.as_str()).collect();
            format!("{STRONG}{unit}{STRONG:#}: {}", fully_visible(&names.join(", ")))
        };
        screen::out(format!("{head}\n    {wants}"))?;
    }
    let first = units.first().map(|(unit, _, same)| match same.as_slice() {
        [one] => one.label.as_str(),
        _ => unit,
    });
    screen::note(match first {
        None => {
            "nothing here needs the operator's trust; `toolcrib trust --list` lists what is trusted"
                .to_owned()
        }
        Some(first) => format!(
            "{FAINT}look at what they run and trust them, for example with `toolcrib trust {first}`{FAINT:#}"
        ),
    });
    Ok(Exit::Success)
}

fn list(keeper: &TrustKeeper, record: &TrustRecord, as_json: bool) -> anyhow::Result<Exit> {
    let all = record.read()?;
    if as_json {
        let all: Vec<Value> = all.iter().map(record_json).collect();
        screen::json(&json!({ "trusted": all }))?;
        return Ok(Exit::Success);
    }
    for own in &all {
        let (label, digest) = (label(keeper, &own.unit, &own.name), &own.digest);
        screen::out(format!("{STRONG}{label}{STRONG:#} {FAINT}{digest}{FAINT:#}"))?;
    }
    if all.is_empty() {
        screen::note("nothing was trusted with `toolcrib trust`");
    }
    Ok(Exit::Success)
}

fn revoke(
    config: &Config,
    record: &TrustRecord,
    units: &[String],
    as_json: bool,
) -> anyhow::Result<Exit> {
    let removed = record.remove(|own| {
        units.iter().any(|unit| name_filter(config, &own.unit, unit).takes(&own.name))
    })?;
    if as_json {
        screen::json(&json!({ "revoked": removed }))?;
    } else if removed > 0 {
        screen::out(format!("revoked {}", screen::count(removed, "tool")))?;
    } else {
        screen::note(format!(
            "{ERROR}error{ERROR:#}: `{}` was not trusted with `toolcrib trust`: see `toolcrib trust \
             --list`",
            units.join("`, `")
        ));
    }
    Ok(if removed > 0 { Exit::Success } else { Exit::Failure })
}

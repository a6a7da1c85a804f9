//! Names in a config that match nothing, usually typing mistakes that would go unnoticed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use toolcrib_core::{Pattern, RegistrySnapshot};
use toolcrib_manifest::Severity;

use crate::Toolcrib;
use crate::manifests::trust::plain;
use crate::settings::{Config, ConfigFinding};

impl Toolcrib {
    /// The names in a config's `manifests.trusted`, `policy`, `toolsets` and `registry.allow_override` that match no
    /// manifest and no tool of this crib, and the toolsets in `server`, and the models, toolsets and agents of `agents`, that are
    /// not declared; also the providers of models to which requests go unencrypted. Patterns with `*` or `?`,
    /// and names of other MCP servers' tools, may match later and are not reported.
    pub fn unmatched_names(&self, config: &Config) -> Vec<ConfigFinding> {
        let known = LoadedNames::of(self);
        let snapshot = self.executor().registry().snapshot();
        let no_tool = |path: &[&str], said: String, tool: &str| {
            let help = match snapshot.near(tool, |_| true).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "correct the name, or remove it: `toolcrib list --all` shows the tools"
                    .to_owned(),
            };
            ConfigFinding::unmatched(
                path,
                format!("{said} `{tool}`, but there is no such tool"),
                help,
            )
        };
        let mut found = Vec::new();
        for (at, entry) in config.manifests.trusted.iter().enumerate() {
            if let Some(missing) = known.trusted(entry) {
                let message = format!("`manifests.trusted` names `{entry}`, but {missing}");
                let help =
                    "correct the entry, or remove it: `toolcrib trust` lists what waits for trust";
                let at = at.to_string();
                found.push(ConfigFinding::unmatched(&["manifests", "trusted", &at], message, help));
            }
        }
        let policy = serde_json::to_value(&config.policy).unwrap_or_default();
        for (at, rule) in items(&policy["rules"]).enumerate() {
            if let Some(tool) = rule["tool"].as_str().filter(|tool| known.lacks_tool(tool)) {
                let said = format!("`policy.rules[{at}]` is about");
                found.push(no_tool(&["policy", "rules", &at.to_string(), "tool"], said, tool));
            }
        }
        found.extend(undeclared_arguments(&policy, &snapshot));
        #[cfg(all(unix, feature = "builtins"))]
        {
            let names = self.offered_builtins().names();
            for (at, pattern) in config.builtins.enabled.iter().flatten().enumerate() {
                if !names.iter().any(|name| pattern.matches(name)) {
                    let message = format!(
                        "`builtins.enabled` names `{pattern}`, but there is no such built-in tool"
                    );
                    let path = ["builtins", "enabled", &at.to_string()];
                    let help = "correct the name, or remove it";
                    found.push(ConfigFinding::unmatched(&path, message, help));
                }
            }
        }
        for (name, toolset) in &config.toolsets {
            let rules = serde_json::to_value(toolset).unwrap_or_default();
            for key in ["include", "exclude"] {
                for (rule, says) in items(&rules[key]).enumerate() {
                    let tools = items(&says["names"]).filter_map(Value::as_str).enumerate();
                    for (at, tool) in tools.filter(|(_, tool)| known.lacks_tool(tool)) {
                        let (rule, at) = (rule.to_string(), at.to_string());
                        let path = ["toolsets", name, key, &rule, "names", &at];
                        found.push(no_tool(&path, format!("`toolsets.{name}.{key}` names"), tool));
                    }
                }
            }
            // Without MCP, neither is offered.
            #[cfg(feature = "mcp")]
            for (key, kind) in [("prompts", "prompt"), ("resources", "resource")] {
                for (at, other) in items(&rules[key]).filter_map(Value::as_str).enumerate() {
                    if is_exact(other) && !known.others.contains(&(kind, other.to_owned())) {
                        let message = format!(
                            "`toolsets.{name}.{key}` names `{other}`, but there is no such {kind}"
                        );
                        let path = ["toolsets", name, key, &at.to_string()];
                        let help = format!("correct the name of the {kind}, or remove it");
                        found.push(ConfigFinding::unmatched(&path, message, help));
                    }
                }
            }
        }
        #[cfg(feature = "http")]
        found.extend(undeclared_toolsets(config));
        #[cfg(feature = "agent")]
        {
            found.extend(config.unmatched_of_agents(&self.secrets));
            found.extend(config.unencrypted_providers());
        }
        #[cfg(all(unix, feature = "crawler"))]
        {
            found.extend(config.unmatched_of_web(&self.secrets));
            found.extend(config.unencrypted_searches());
        }
        for (at, entry) in config.registry.allow_override.iter().enumerate() {
            if !known.overrides.contains(entry) && !known.is_of_upstream(entry) {
                let missing = known.missing_override(entry);
                let message = format!("`registry.allow_override` names `{entry}`, but {missing}");
                let path = ["registry", "allow_override", &at.to_string()];
                let help = "correct the entry, or remove it";
                found.push(ConfigFinding::unmatched(&path, message, help));
            }
        }
        found
    }

    /// The patterns in a config's `policy` that match no tool of this crib, as hints: tools may come later. Nothing is known
    /// of the tools of other MCP servers.
    pub fn unmatched_patterns(&self, config: &Config) -> Vec<ConfigFinding> {
        if !self.declares_no_upstreams() {
            return Vec::new();
        }
        let snapshot = self.executor().registry().snapshot();
        let policy = serde_json::to_value(&config.policy).unwrap_or_default();
        let mut found = Vec::new();
        for (at, rule) in items(&policy["rules"]).enumerate() {
            let Some(tool) = rule["tool"].as_str().filter(|tool| !is_exact(tool)) else { continue };
            let pattern = Pattern::new(tool);
            if snapshot.entries().any(|entry| pattern.matches(entry.name())) {
                continue;
            }
            let at = at.to_string();
            let message = format!("no tool has a name like `{tool}` of `policy.rules[{at}]`");
            let help = "correct the pattern, or keep it for tools that come later";
            let found_here =
                ConfigFinding::unmatched(&["policy", "rules", &at, "tool"], message, help);
            found.push(ConfigFinding { severity: Severity::Hint, ..found_here });
        }
        found
    }

    #[cfg(feature = "mcp")]
    fn declares_no_upstreams(&self) -> bool {
        self.declared_upstreams().is_empty()
    }

    #[cfg(not(feature = "mcp"))]
    fn declares_no_upstreams(&self) -> bool {
        true
    }
}

/// Arguments of policy rules that the tool of the rule does not have: such a rule matches no call.
fn undeclared_arguments(policy: &Value, snapshot: &RegistrySnapshot) -> Vec<ConfigFinding> {
    let mut found = Vec::new();
    for (at, rule) in items(&policy["rules"]).enumerate() {
        let Some(tool) = rule["tool"].as_str() else { continue };
        let Some(entry) = snapshot.get(tool) else { continue };
        let schema = entry.definition.input_schema();
        let is_open = schema.get("additionalProperties").is_some_and(|more| *more != false);
        let Some(known) = schema.get("properties").and_then(Value::as_object).filter(|_| !is_open)
        else {
            continue;
        };
        for place in rule["arguments"].as_object().into_iter().flat_map(|given| given.keys()) {
            // A path leads into the first argument that it names.
            let name = place.trim_start_matches('/').split(['/', '.']).next().unwrap_or_default();
            if known.contains_key(name) || known.contains_key(place) {
                continue;
            }
            let message = format!(
                "`policy.rules[{at}]` is about the argument `{name}` of `{tool}`, which has none of that name, so \
                 the rule matches no call"
            );
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let help = match names.as_slice() {
                [] => "remove it: the tool has no arguments".to_owned(),
                names => format!("write one that the tool has: {}", names.join(", ")),
            };
            let at = at.to_string();
            let path = ["policy", "rules", &at, "arguments", place];
            found.push(ConfigFinding::unmatched(&path, message, help));
        }
    }
    found
}

/// The toolsets of the server's clients that `toolsets` does not declare. The server does not start with such a config.
#[cfg(feature = "http")]
fn undeclared_toolsets(config: &Config) -> Vec<ConfigFinding> {
    let own = config.server.toolset.as_ref().map(|name| (vec!["server", "toolset"], name));
    let clients = config.server.tokens.iter().filter_map(|(client, settings)| {
        let path = vec!["server", "tokens", client.as_str(), "toolset"];
        Some((path, settings.toolset.as_ref()?))
    });
    let undeclared =
        own.into_iter().chain(clients).filter(|(_, name)| !config.toolsets.contains_key(*name));
    undeclared
        .map(|(path, name)| {
            let message = format!(
                "`{}` names `{name}`, but `toolsets` declares no such toolset, so `toolcrib serve` \
                 will not start",
                path.join(".")
            );
            let help = format!("declare it under `toolsets`, or correct the name `{name}`");
            ConfigFinding::refused(&path, message, help)
        })
        .collect()
}

/// The names that entries can match.
struct LoadedNames {
    tools: BTreeSet<String>,
    /// Manifests by their absolute path, with the names they declare.
    declared: BTreeSet<(String, String)>,
    files: BTreeSet<String>,
    /// Tools as `unit:name`.
    overrides: BTreeSet<String>,
    /// Prompts and resources.
    #[cfg(feature = "mcp")]
    others: BTreeSet<(&'static str, String)>,
    #[cfg(feature = "mcp")]
    upstreams: Vec<toolcrib_mcp::upstream::Upstream>,
}

impl LoadedNames {
    fn of(crib: &Toolcrib) -> Self {
        let snapshot = crib.executor().registry().snapshot();
        let mut known = Self {
            tools: BTreeSet::new(),
            declared: BTreeSet::new(),
            files: BTreeSet::new(),
            overrides: BTreeSet::new(),
            #[cfg(feature = "mcp")]
            others: BTreeSet::new(),
            #[cfg(feature = "mcp")]
            upstreams: crib.declared_upstreams(),
        };
        known.add_tools(&snapshot);
        let files = crib.manifests().map(crate::manifests::Reloader::files).unwrap_or_default();
        known.files.extend(files.iter().map(|file| plain(&file.path)));
        #[cfg(feature = "mcp")]
        for one in crib.declared_names() {
            let kind = one.kind.as_str();
            known.declared.insert((plain(Path::new(one.source.unit.as_str())), one.name.clone()));
            known.others.insert((kind, one.name));
        }
        known
    }

    fn add_tools(&mut self, snapshot: &RegistrySnapshot) {
        let losers = snapshot.conflicts().iter().map(|conflict| &conflict.loser);
        for entry in snapshot.entries().chain(losers) {
            let (unit, name) = (entry.source.unit.as_str(), entry.name().to_owned());
            self.overrides.insert(format!("{unit}:{name}"));
            self.declared.insert((plain(Path::new(unit)), name.clone()));
            self.tools.insert(name);
        }
    }

    /// Whether no tool has the name, and none of another MCP server can get it.
    fn lacks_tool(&self, name: &str) -> bool {
        #[cfg(feature = "agent")]
        if crate::agents::is_sub_agent_tool(name) {
            return false;
        }
        is_exact(name) && !self.tools.contains(name) && !self.may_be_offered(name)
    }

    #[cfg(feature = "mcp")]
    fn may_be_offered(&self, name: &str) -> bool {
        self.upstreams.iter().any(|upstream| upstream.may_offer(name))
    }

    #[cfg(not(feature = "mcp"))]
    fn may_be_offered(&self, _: &str) -> bool {
        false
    }

    /// The missing part of an entry of `registry.allow_override`.
    fn missing_override(&self, entry: &str) -> String {
        let Some((unit, name)) = entry.rsplit_once(':').filter(|(unit, _)| !unit.is_empty()) else {
            return "an entry is written `unit:name`, as in `tools.d/own.yaml:new_task`".to_owned();
        };
        let suffix = format!(":{name}");
        let others = self.overrides.iter().filter(|own| own.ends_with(&suffix));
        let others: Vec<_> = others.map(|own| format!("`{own}`")).collect();
        if others.is_empty() {
            format!("`{unit}` declares no tool `{name}`")
        } else {
            format!("`{unit}` declares no tool `{name}`; did you mean {}?", others.join(" or "))
        }
    }

    /// Whether an entry `unit:name` refers to another MCP server.
    #[cfg(feature = "mcp")]
    fn is_of_upstream(&self, entry: &str) -> bool {
        let unit = entry.split(':').next();
        self.upstreams.iter().any(|upstream| unit == Some(upstream.name()))
    }

    #[cfg(not(feature = "mcp"))]
    fn is_of_upstream(&self, _: &str) -> bool {
        false
    }

    /// The missing part of an entry of `manifests.trusted`.
    fn trusted(&self, entry: &str) -> Option<String> {
        let path = plain(Path::new(entry));
        if self.files.contains(&path) {
            return None;
        }
        let named = self.files.iter().find_map(|file| {
            let name = path.strip_prefix(file.as_str())?.strip_prefix(':')?;
            Some((file, name))
        });
        let Some((file, name)) = named else {
            return Some("no manifest of that path is loaded".to_owned());
        };
        let of_file: Vec<_> = self.declared.iter().filter(|(own, _)| own == file).collect();
        // In a path, repeated slashes of a resource's address have become one. A broken file declares nothing.
        let is_there = of_file.iter().any(|(_, own)| plain_name(own) == plain_name(name));
        (!of_file.is_empty() && !is_there)
            .then(|| format!("the manifest declares nothing of the name `{name}`"))
    }
}

fn plain_name(name: &str) -> String {
    name.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn is_exact(pattern: &str) -> bool {
    !pattern.contains(['*', '?'])
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

#[cfg(all(test, feature = "mcp"))]
mod tests {
    use super::*;
    use crate::manifests::Manifests;

    fn messages(crib: &Toolcrib, config: &Config) -> Vec<String> {
        crib.unmatched_names(config).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn names_that_match_nothing_are_said_and_patterns_and_those_of_servers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let text = "toolcrib: 1\ntools:\n  - name: ping\n    description: Answer.\n    run: {argv: [echo]}\n\
                    prompts:\n  - name: review\n    description: Look.\n    messages: [{role: user, text: Hi}]\n\
                    upstream:\n  - {name: github, command: [github]}\n";
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, text).unwrap();
        let unit = file.display();
        let config = format!(
            "manifests: {{trusted: ['{unit}', '{unit}:ping', '{unit}:pong', /nowhere.yaml]}}\n\
             policy: {{rules: [{{tool: ping, action: ask}}, {{tool: pnig, action: deny}}, \
             {{tool: 'x_*', action: deny}}, {{tool: github_issue, action: ask}}]}}\n\
             toolsets: {{a: {{include: [{{names: [ping, pign]}}], exclude: [{{names: [gone]}}], \
             prompts: [review, rewiev]}}}}\n\
             registry: {{allow_override: ['{unit}:ping', 'b.yaml:ping']}}\n"
        );
        let config: Config = toolcrib_manifest::decode("config.yml", &config).unwrap();
        let host = config.runner_host(toolcrib_runners::Secrets::default());
        let manifests = Manifests::load(&[folder.path().to_owned()], host);
        let crib = Toolcrib::builder().settings(&config).manifests(&manifests).build().unwrap();
        let said = messages(&crib, &config);
        let about =
            ["pong`", "/nowhere.yaml`", "`pnig`", "`pign`", "`gone`", "`rewiev`", "`b.yaml:ping`"];
        assert_eq!(said.len(), about.len(), "{said:#?}");
        for (said, about) in said.iter().zip(about) {
            assert!(said.contains(about), "{about}: {said}");
        }
    }

    #[test]
    fn an_argument_of_a_rule_that_its_tool_does_not_have_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let text = "toolcrib: 1\ntools:\n  - name: show\n    description: Show a file.\n    \
                    input: {properties: {path: {type: string}, more: {type: object}}}\n    \
                    run: {argv: [cat, --, \"${args.path}\"]}\n";
        std::fs::write(folder.path().join("a.yaml"), text).unwrap();
        let config = "policy:\n  rules:\n    \
             - {tool: show, arguments: {pth: {glob: x}}, action: deny}\n    \
             - {tool: show, arguments: {path: {glob: x}}, action: deny}\n    \
             - {tool: 'sh*', arguments: {other: {glob: x}}, action: deny}\n    \
             - {arguments: {other: {glob: x}}, action: ask}\n";
        let config: Config = toolcrib_manifest::decode("config.yml", config).unwrap();
        let host = config.runner_host(toolcrib_runners::Secrets::default());
        let manifests = Manifests::load(&[folder.path().to_owned()], host);
        let crib = Toolcrib::builder().settings(&config).manifests(&manifests).build().unwrap();
        let said = messages(&crib, &config);
        assert_eq!(said.len(), 1, "{said:#?}");
        assert!(said[0].contains("`pth` of `show`"), "{said:#?}");
    }

    #[test]
    fn an_override_of_no_tool_is_told_by_what_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(
            &path,
            "toolcrib: 1\ntools:\n  - {name: ping, description: Ping., run: {argv: [date]}}\n",
        )
        .unwrap();
        let unit = path.display().to_string();
        let config =
            format!("registry: {{allow_override: [ping, '{unit}:pong', 'b.yaml:ping']}}\n");
        let config: Config = toolcrib_manifest::decode("config.yml", &config).unwrap();
        let host = config.runner_host(toolcrib_runners::Secrets::default());
        let manifests = Manifests::load(&[folder.path().to_owned()], host);
        let crib = Toolcrib::builder().settings(&config).manifests(&manifests).build().unwrap();
        let said = messages(&crib, &config);
        assert!(said[0].contains("`ping`, but an entry is written `unit:name`"), "{said:#?}");
        assert!(said[1].ends_with(&format!("`{unit}` declares no tool `pong`")), "{said:#?}");
        assert!(said[2].ends_with(&format!("did you mean `{unit}:ping`?")), "{said:#?}");
    }

    #[cfg(feature = "http")]
    #[test]
    fn toolsets_of_the_server_that_nothing_declares_are_told() {
        let config =
            "server: {toolset: reader, tokens: {ci: {hash: \"blake3:HASH\", toolset: ops}, \
                      me: {hash: \"blake3:HASH\", toolset: known}}}\ntoolsets: {known: {}}\n"
                .replace("HASH", &"a".repeat(64));
        let config: Config = toolcrib_manifest::decode("config.yml", &config).unwrap();
        let crib = Toolcrib::builder().settings(&config).build().unwrap();
        let said = messages(&crib, &config);
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said[0].starts_with("`server.toolset` names `reader`"), "{said:#?}");
        assert!(said[1].starts_with("`server.tokens.ci.toolset` names `ops`"), "{said:#?}");
    }
}

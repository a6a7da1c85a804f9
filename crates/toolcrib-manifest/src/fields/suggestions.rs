//! Suggestions for values of the wrong type: the value as it was probably meant.

use crate::document::{Entry, Node, NodeValue, shortened};

/// Words for units of time, each with the unit of manifests.
const TIMES: [(&str, &[&str]); 5] = [
    ("ms", &["ms", "msec", "msecs", "millis", "milliseconds"]),
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("m", &["m", "min", "mins", "minute", "minutes"]),
    ("h", &["h", "hr", "hrs", "hour", "hours"]),
    ("d", &["d", "day", "days"]),
];

/// Words for units of sizes, in lower case.
const SIZES: [(&str, &[&str]); 4] = [
    ("B", &["b", "byte", "bytes"]),
    ("KiB", &["k", "ki", "kb", "kib", "kilobytes"]),
    ("MiB", &["m", "mi", "mb", "mib", "megabytes"]),
    ("GiB", &["g", "gi", "gb", "gib", "gigabytes"]),
];

/// Words for the times of rates.
const RATES: [(&str, &[&str]); 3] = [
    ("s", &["s", "sec", "second", "seconds"]),
    ("min", &["m", "min", "minute", "minutes"]),
    ("h", &["h", "hr", "hour", "hours"]),
];

/// Values with other names elsewhere: the key, the written words, and our value.
const CHOICES: &[(&str, &[&str], &str)] = &[
    (
        "approval",
        &["required", "require", "true", "yes", "on", "ask", "manual", "confirm"],
        "always",
    ),
    ("approval", &["false", "no", "off", "none", "auto"], "never"),
    ("dedupe", &["false", "no", "off", "never"], "none"),
    ("dedupe", &["true", "yes", "on"], "batch"),
    (
        "error",
        &["bad_args", "invalid_argument", "invalid_arguments", "invalid_input", "validation"],
        "invalid_args",
    ),
    ("error", &["forbidden", "refused", "rejected", "blocked"], "denied"),
    ("error", &["time_out", "timed_out", "deadline"], "timeout"),
    ("format", &["string", "plain", "raw", "txt", "str"], "text"),
    ("format", &["jsonl", "ndjson", "line", "list"], "lines"),
    ("keep", &["first", "start", "top", "begin"], "head"),
    ("keep", &["last", "end", "bottom"], "tail"),
    ("keep", &["all", "true"], "both"),
    ("profile", &["host", "unconfined", "full"], "trusted"),
    ("profile", &["network", "net", "internet"], "workspace+net"),
    ("profile", &["default", "sandboxed", "true"], "workspace"),
    ("require", &["true", "yes", "on", "strict"], "required"),
    ("require", &["false", "no", "off", "optional"], "best_effort"),
    ("role", &["system", "model", "ai"], "assistant"),
    ("role", &["human"], "user"),
    ("task", &["true", "yes", "on", "always"], "required"),
    ("task", &["false", "no", "off", "none"], "never"),
];

/// The keys of lists of numbers.
const CODES: [&str; 3] = ["ok_exit", "retry_exit", "status"];

/// The keys of lists whose entries have names.
const NAMED: [&str; 5] = ["tools", "upstream", "prompts", "tests", "arguments"];

/// The number and the unit of `2 min`, `64K` or `30`.
fn measure(written: &str) -> Option<(&str, String)> {
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = written.split_at(digits);
    (digits > 0).then(|| (number, unit.trim().to_ascii_lowercase()))
}

fn unit(word: &str, units: &[(&'static str, &[&str])]) -> Option<&'static str> {
    units.iter().find(|(_, words)| words.contains(&word)).map(|(unit, _)| *unit)
}

/// `2m` for `2 min`, and `30s` for `30`.
pub(crate) fn duration(written: &str) -> Option<String> {
    if let Some((minutes, seconds)) = written.split_once(':') {
        let [minutes, seconds] = [minutes, seconds].map(|part| part.trim().parse::<u32>().ok());
        let seconds = minutes?.checked_mul(60)?.checked_add(seconds?)?;
        return Some(format!("{seconds}s"));
    }
    let (number, word) = measure(written)?;
    if word.contains(|c: char| c.is_ascii_digit()) {
        return sum_of_durations(written);
    }
    let unit = if word.is_empty() { "s" } else { unit(&word, &TIMES)? };
    Some(format!("{number}{unit}"))
}

/// `90m` for `1h30m`: the sum in the smallest written unit.
fn sum_of_durations(written: &str) -> Option<String> {
    let milliseconds = |unit: &str| match unit {
        "ms" => 1_u64,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 86_400_000,
    };
    let (mut rest, mut sum, mut smallest) = (written.trim(), 0_u64, "d");
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let word = behind.trim_start();
        let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
        let own = unit(&word[..end].to_ascii_lowercase(), &TIMES)?;
        let part = number.parse::<u64>().ok()?.checked_mul(milliseconds(own))?;
        sum = sum.checked_add(part)?;
        if milliseconds(own) < milliseconds(smallest) {
            smallest = own;
        }
        rest = word[end..].trim_start();
    }
    Some(format!("{}{smallest}", sum / milliseconds(smallest)))
}

/// `64KiB` for `64 kb`, and `4096B` for `4096`.
pub(crate) fn size(written: &str) -> Option<String> {
    let (number, word) = measure(written)?;
    let unit = if word.is_empty() { "B" } else { unit(&word, &SIZES)? };
    Some(format!("{number}{unit}"))
}

/// `30/min` for `30 per minute`.
pub(crate) fn rate(written: &str) -> Option<String> {
    let (number, rest) = measure(written)?;
    let word = rest.trim_start_matches(['/', ' ']).trim_start_matches("per ").trim();
    Some(format!("{number}/{}", unit(word, &RATES)?))
}

/// The value of a choice for a word used elsewhere.
pub(super) fn choice(key: &str, written: &str, choices: &[&str]) -> Option<&'static str> {
    let written = written.to_ascii_lowercase();
    let meant = CHOICES
        .iter()
        .find(|(of, words, _)| *of == key && words.contains(&written.as_str()))
        .map(|(.., meant)| *meant)?;
    choices.contains(&meant).then_some(meant)
}

/// The profiles with what each allows, for a word that may mean no rights or no confinement.
pub(super) fn profiles(key: &str, written: &str) -> Option<String> {
    let is_either = ["none", "off", "false", "no"].contains(&written.to_ascii_lowercase().as_str());
    (key == "profile" && is_either).then(|| {
        "from the strictest: `pure` for no files of the workspace and no network; `workspace`, the default of tools, for \
         the workspace without the network; `workspace+net` for both; `trusted` for no confinement at all, which needs \
         the operator's trust (`toolcrib trust`)"
            .to_owned()
    })
}

/// The help text for a key without a value.
pub(super) fn nothing(key: &str, value: &NodeValue) -> Option<String> {
    (*value == NodeValue::Null).then(|| {
        format!(
            "write the value of `{key}` after it, or on the lines below with a deeper \
             indentation; if there is none, remove the key"
        )
    })
}

/// A list of words in YAML.
pub(crate) fn list_of<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(quoted).collect();
    shortened(&words.join(", "))
}

/// A word as an item of a YAML list, quoted if necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./+=:%".contains(c);
    let is_text = word.starts_with(|c: char| c.is_alphabetic() || "-./".contains(c))
        && word.chars().all(plain)
        && !word.ends_with(':')
        && word != "-"
        && crate::document::other_reading(word).is_none()
        && !["true", "false", "null"].contains(&word.to_ascii_lowercase().as_str())
        && word.parse::<f64>().is_err();
    if is_text { word.to_owned() } else { format!("\"{word}\"") }
}

/// A suggestion for a value that is not a list of texts.
pub(super) fn texts(key: &str, value: &NodeValue, raw: &str) -> Option<String> {
    let written = match value {
        NodeValue::String(written) => written.as_str(),
        NodeValue::Number(_) | NodeValue::Bool(_) => raw,
        NodeValue::Mapping(entries)
            if !entries.is_empty() && entries.iter().all(|e| e.node.value == NodeValue::Null) =>
        {
            let names = list_of(entries.iter().map(|entry| entry.key.as_str()));
            return Some(format!("write a list: {key}: [{names}]"));
        }
        _ => return None,
    };
    let is_command = ["argv", "command", "worker"].contains(&key);
    if key == "argv"
        && let Some(help) = shell_line(written)
    {
        return Some(help);
    }
    if is_command && !written.contains(['"', '\'', '\\', '`']) {
        let words = list_of(written.split_whitespace());
        return Some(format!("write an entry for each argument: {key}: [{words}]"));
    }
    if written.contains(',') {
        let parts = written.split(',').map(str::trim).filter(|part| !part.is_empty());
        return Some(format!("write a list: {key}: [{}]", list_of(parts)));
    }
    (!written.is_empty()).then(|| format!("write [{}]", list_of(std::iter::once(written))))
}

/// A suggestion for a single shell command line.
pub(crate) fn shell_line(line: &str) -> Option<String> {
    let is_sign = |word: &str| {
        matches!(word, "|" | "||" | "&&" | ";" | "&" | ">" | ">>" | "<" | "2>&1" | "2>/dev/null")
            || word.ends_with(';')
    };
    if line.contains("${") || !line.split_whitespace().any(is_sign) {
        return None;
    }
    let quoted = shortened(&line.trim().replace('\'', "''"));
    Some(format!("a shell reads such a line: write `run: {{shell: sh, text: '{quoted}'}}`"))
}

/// The whole numbers of `0` or `0, 1`, as items of a list.
fn numbers(written: &str) -> Option<String> {
    let number = |part: &str| part.trim().parse::<u64>().ok().map(|number| number.to_string());
    let numbers: Option<Vec<_>> = written.split(',').map(number).collect();
    Some(numbers?.join(", "))
}

/// A suggestion for an item of a list of numbers that is a text.
pub(crate) fn number(item: &Node) -> Option<String> {
    numbers(item.as_str()?).map(|numbers| format!("write {numbers} without quotation marks"))
}

/// A suggestion for a value that is not a list.
pub(super) fn list(key: &str, value: &NodeValue, raw: &str) -> String {
    match value {
        NodeValue::Mapping(entries) if NAMED.contains(&key) => named_list(entries),
        NodeValue::Mapping(_) if key == "messages" => {
            "write a list: messages: [{role: user, text: …}]".to_owned()
        }
        NodeValue::Null => format!("write `{key}: []` for none"),
        NodeValue::Mapping(_) | NodeValue::Sequence(_) => {
            "write a list: begin each entry with `- `".to_owned()
        }
        NodeValue::String(written)
            if CODES.contains(&key)
                && let Some(codes) = numbers(written) =>
        {
            format!("write a list: {key}: [{codes}]")
        }
        value => texts(key, value, raw).map_or_else(
            || format!("write a list: {key}: [first, second]"),
            |help| match help.strip_prefix("write [") {
                // A single value becomes an item as it was written: numbers stay numbers.
                Some(_) => format!("write a list: {key}: [{}]", shortened(raw)),
                None => help,
            },
        ),
    }
}

/// The list for a mapping from names to declarations.
fn named_list(entries: &[Entry]) -> String {
    let first = entries.first();
    match first.map(|entry| (entry.key.as_str(), &entry.node.value)) {
        Some((name, NodeValue::Mapping(_))) => format!(
            "write a list in which each entry has its name: begin with `- name: {}`, and indent \
             the \
             other keys as far as `name`",
            shortened(name)
        ),
        Some(_) => {
            let name = entries.iter().find(|entry| entry.key == "name");
            let name = name.and_then(|entry| entry.node.as_str()).unwrap_or("…");
            format!("write a list: begin the entry with a dash: `- name: {}`", shortened(name))
        }
        None => "write `[]` for none".to_owned(),
    }
}

/// The mapping for a list of `NAME=value`, or for one such text.
pub(super) fn text_mapping(key: &str, value: &NodeValue) -> Option<String> {
    let items: Vec<&Node> = match value {
        NodeValue::Sequence(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let one = |text: &str| {
        let (name, value) = text.split_once('=').or_else(|| text.split_once(':'))?;
        Some(format!("{}: {}", name.trim(), quoted(value.trim())))
    };
    let pair = |node: &Node| match &node.value {
        NodeValue::String(text) => one(text),
        NodeValue::Mapping(entries) => {
            let text = |key: &str| node.entry(key).and_then(|entry| entry.node.as_str());
            match (text("name"), text("value"), entries.as_slice()) {
                (Some(name), Some(value), _) => Some(format!("{name}: {}", quoted(value))),
                (_, _, [entry]) => Some(format!("{}: {}", entry.key, quoted(entry.node.as_str()?))),
                _ => None,
            }
        }
        _ => None,
    };
    let pairs: Option<Vec<String>> = match value {
        NodeValue::String(text) => one(text).map(|pair| vec![pair]),
        NodeValue::Sequence(_) => items.iter().map(|node| pair(node)).collect(),
        _ => None,
    };
    let pairs = pairs.filter(|pairs| !pairs.is_empty())?;
    Some(format!("write a mapping: {key}: {{{}}}", shortened(&pairs.join(", "))))
}

/// The mapping for a single value or a list.
pub(super) fn mapping(key: &str, value: &NodeValue, raw: &str) -> Option<String> {
    let written = match value {
        NodeValue::String(text) => text.as_str(),
        NodeValue::Number(_) | NodeValue::Bool(_) => raw,
        NodeValue::Sequence(items) => {
            let names: Vec<&str> = items.iter().filter_map(Node::as_str).collect();
            if names.is_empty() || names.len() != items.len() {
                return None;
            }
            return of_names(key, &names);
        }
        _ => return None,
    };
    let inside = match key {
        "run" if !written.contains(['"', '\'', '\\', '`', '\n']) => {
            format!("argv: [{}]", list_of(written.split_whitespace()))
        }
        "limits" => format!("timeout: {}", duration(written)?),
        "output" => format!(
            "format: {}",
            choice("format", written, &["text", "lines"]).or(["text", "json", "lines", "auto"]
                .into_iter()
                .find(|known| *known == written))?
        ),
        "sandbox" if matches!(written, "none" | "off" | "false" | "no") => {
            return Some(
                "delete the line for the default, which has no network and only the workspace; write `sandbox: \
                 {profile: workspace+net}` for the network, or `{profile: trusted}` for no confinement, which needs \
                 the operator's trust"
                    .to_owned(),
            );
        }
        "sandbox" => {
            let known = ["pure", "workspace", "workspace+net", "trusted"];
            let meant = choice("profile", written, &known);
            format!("profile: {}", meant.or(known.into_iter().find(|one| *one == written))?)
        }
        "cache" => format!("ttl: {}", duration(written)?),
        "retry" => format!("max: {}", written.parse::<u32>().ok()?),
        "auth" if written.contains("${secret.") => format!("bearer: \"{written}\""),
        "http" if written.contains("://") => format!("method: GET, url: \"{written}\""),
        "expect" => format!("status: [{}]", written.parse::<u16>().ok()?),
        "annotations" | "needs" | "context" => return of_names(key, &[written]),
        _ => return None,
    };
    Some(format!("write `{key}: {{{}}}`", shortened(&inside)))
}

/// The mapping for a list of names.
fn of_names(key: &str, names: &[&str]) -> Option<String> {
    let inside = match key {
        "annotations" => {
            let set: Vec<String> = names.iter().map(|name| format!("{name}: true")).collect();
            set.join(", ")
        }
        "needs" => format!("bins: [{}]", list_of(names.iter().copied())),
        "context" => {
            let set: Vec<String> =
                names.iter().map(|name| format!("{name}: {{from: ctx.{name}}}")).collect();
            set.join(", ")
        }
        "run" => format!("argv: [{}]", list_of(names.iter().copied())),
        "tools" => format!("include: [{}]", list_of(names.iter().copied())),
        "input" | "output_schema" => {
            let set: Vec<String> =
                names.iter().map(|name| format!("{name}: {{type: string}}")).collect();
            format!("properties: {{{}}}", set.join(", "))
        }
        _ => return None,
    };
    Some(format!("write `{key}: {{{}}}`", shortened(&inside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_written_with_the_units_of_manifests() {
        let durations = [
            ("2 min", "2m"),
            ("30", "30s"),
            ("30 seconds", "30s"),
            ("1 hour", "1h"),
            ("500 ms", "500ms"),
            ("10min", "10m"),
            ("1h30m", "90m"),
            ("1 min 5 sec", "65s"),
            ("1:30", "90s"),
        ];
        for (written, meant) in durations {
            assert_eq!(duration(written).as_deref(), Some(meant), "{written}");
        }
        for (written, meant) in
            [("64K", "64KiB"), ("64 kb", "64KiB"), ("1M", "1MiB"), ("10", "10B")]
        {
            assert_eq!(size(written).as_deref(), Some(meant), "{written}");
        }
        for (written, meant) in [("30 per minute", "30/min"), ("5/sec", "5/s"), ("9/hour", "9/h")] {
            assert_eq!(rate(written).as_deref(), Some(meant), "{written}");
        }
        for written in ["", "soon", "1.5h", "3 weeks"] {
            assert_eq!(duration(written), None, "{written}");
        }
    }

    #[test]
    fn words_are_quoted_if_yaml_needs_it() {
        let words = ["npx", "-y", "server@1", "5", "no", "a b", "--x=y", "/srv", "null"];
        assert_eq!(
            list_of(words.into_iter()),
            "npx, -y, \"server@1\", \"5\", \"no\", \"a b\", --x=y, /srv, \"null\""
        );
    }
}

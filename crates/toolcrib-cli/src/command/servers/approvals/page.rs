//! What a person reads about a waiting call before the decision.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolcrib::tool::units::HumanDuration;
use toolcrib::tool::{exact, fully_visible, is_unseen};

use crate::screen::{FAINT, STRONG};

/// One call with everything that a person needs for the decision.
pub(super) fn page(call: &Value) -> String {
    let mut page = format!(
        "{STRONG}{}{STRONG:#} {FAINT}{}{FAINT:#}\n",
        escaped(&call["tool"]),
        escaped(&call["id"])
    );
    let mut line = |head: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(page, "  {head:<11} {value}");
        }
    };
    line("asked by", &asker(call));
    line("session", &escaped(&call["session"]));
    line("rule", &escaped(&call["rule"]));
    line("reason", &escaped(&call["reason"]));
    line("expires in", &remaining(&call["expires_at"]));
    line("server", &call["pid"].to_string());
    line("call digest", &escaped(&call["digest"]));
    for (key, head) in
        [("arguments", "arguments"), ("injected", "injected values"), ("plan", "plan")]
    {
        let shown = match &call[key] {
            Value::Null => continue,
            Value::Object(entries) if entries.is_empty() && key == "injected" => continue,
            Value::String(text) if text.lines().all(|line| fully_visible(line) == line) => {
                text.clone()
            }
            value => {
                let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
                visible_json(&exact::restore(&pretty))
            }
        };
        let _ = writeln!(page, "  {head}\n{}", indented(&shown));
    }
    page
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// Who made the call: user, tenant and client, as far as known.
pub(super) fn asker(call: &Value) -> String {
    let asker = &call["asker"];
    let known = ["user", "tenant", "client"].into_iter().filter(|key| !asker[*key].is_null());
    let said = known.map(|key| {
        let value = &asker[key];
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key} {}", fully_visible(&shown))
    });
    let said: Vec<_> = said.collect();
    if said.is_empty() { "the host".to_owned() } else { said.join(", ") }
}

/// How long a call will still wait, given its expiry.
pub(super) fn remaining(expires_at: &Value) -> String {
    let end = text(expires_at);
    let Some(seconds) = unix_seconds(end) else { return end.to_owned() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match Duration::from_secs(seconds).checked_sub(now) {
        None => "expired".to_owned(),
        Some(left) => HumanDuration(Some(Duration::from_secs(left.as_secs()))).to_string(),
    }
}

/// Converts a server's RFC 3339 time in UTC to seconds since 1970.
fn unix_seconds(time: &str) -> Option<u64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let part = |text: &str| text.parse::<u64>().ok();
    let mut date = date.splitn(3, '-').map(part);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.split('.').next()?.splitn(3, ':').map(part);
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Counting years from March puts the leap day at the end.
    let (year, month) =
        if month < 3 { (year.checked_sub(1)?, month + 9) } else { (year, month - 3) };
    let day_of_year = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days =
        (year * 365 + year / 4 + year / 400 + day_of_year).checked_sub(year / 100 + 719_468)?;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

/// JSON for a terminal: characters that move the cursor, change the text direction or are invisible
/// are written as JSON escapes, so that different values look different.
pub(super) fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        // JSON has escaped these inside strings; here they are white space.
        if matches!(character, '\n' | ' ') || !is_unseen(character) {
            shown.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        }
    }
    shown
}

/// A short text, escaped for a terminal.
pub(super) fn escaped(value: &Value) -> String {
    fully_visible(text(value)).into_owned()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_a_caller_sent_hides_on_the_screen_of_an_approver() {
        let call =
            json!({"tool": "bash", "arguments": {"command": "a\u{202e}b\u{9b}2J\u{2028}c\nd"}});
        let page = page(&call);
        for unseen in ['\u{202e}', '\u{9b}', '\u{2028}'] {
            assert!(!page.contains(unseen), "{page:?}");
        }
        assert!(page.contains(r"a\u202eb\u009b2J\u2028c\nd"), "{page}");
    }

    #[test]
    fn two_commands_that_differ_never_look_the_same() {
        let shown = |command: &str| {
            page(&json!({"tool": "bash", "arguments": {"command": command}, "plan": command}))
        };
        for (one, other) in [
            ("echo hi #\nrm x", r"echo hi #\nrm x"),
            ("a\u{202e}b", r"a\u{202e}b"),
            ("a\u{202e}b", r"a\u202eb"),
            ("a\u{e0041}b", r"a\udb40\udc41b"),
        ] {
            assert_ne!(shown(one), shown(other));
        }
    }

    #[test]
    fn the_page_of_a_waiting_call_is_complete() {
        let call = json!({
            "id": "7f3a", "tool": "remove", "pid": 7,
            "arguments": {"path": "a.txt", "token": "[masked]"}, "injected": {"user": "ada"},
            "rule": "policy.rules[0]", "reason": "the tool may destroy something",
            "plan": {"argv": ["rm", "a.txt"]},
            "asker": {"user": "ada", "tenant": "acme", "client": null},
            "session": null, "expires_at": "1970-01-01T00:00:00Z",
        });
        let page = page(&call);
        for said in [
            "7f3a",
            "user ada, tenant acme",
            "policy.rules[0]",
            "may destroy",
            "expired",
            "\"token\": \"[masked]\"",
            "\"user\": \"ada\"",
            "\"rm\"",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
        assert!(!page.contains("session"), "{page}");
    }

    #[test]
    fn times_are_read_as_servers_write_them() {
        for (time, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T23:59:59.250Z", Some(1_709_251_199)),
            ("2026-11-22T16:10:00Z", Some(1_795_363_800)),
            ("tomorrow", None),
            ("0000-00-00T00:00:00Z", None),
        ] {
            assert_eq!(unix_seconds(time), seconds, "{time}");
        }
    }
}

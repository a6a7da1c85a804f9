//! Approvers for `toolcrib call`, and the question of `toolcrib run`: the operator at the terminal, or an explicit flag.

use std::io::{self, BufRead};
use std::sync::Arc;

use toolcrib::core::approval::{ApprovalRequest, Approver, Decision};
use toolcrib::tool::{BoxFuture, fully_visible_text};

use crate::screen::{self, STRONG, WARNING};
use crate::terminal_line;

/// The end of the reason for a call that was denied because nobody could be asked.
pub(crate) const NO_TERMINAL: &str = ", and there is no terminal to ask on";

/// The approver for `toolcrib call`. `approved` is set by `--yes` on the command line.
pub(crate) fn operator(approved: bool) -> Arc<dyn Approver> {
    if approved {
        return Arc::new(YesFlag);
    }
    if terminal_line::is_there() {
        Arc::new(Terminal)
    } else {
        Arc::new(|request: &ApprovalRequest| {
            Decision::deny(format!("{}{NO_TERMINAL}", request.reason))
        })
    }
}

/// Approval on the command line: `--yes`.
#[derive(Debug)]
struct YesFlag;

impl Approver for YesFlag {
    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async { Decision::approve() })
    }

    fn name(&self) -> &'static str {
        "--yes"
    }
}

/// Asks on standard error and reads the answer from standard input; both have to be terminals.
#[derive(Debug)]
struct Terminal;

impl Approver for Terminal {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            screen::ask(format!("{}\n", call_to_decide(request, "")));
            terminal_line::forget().await;
            loop {
                screen::ask("Run it? [y/N] ");
                let line = match terminal_line::read().await {
                    Ok(line) => line.unwrap_or_default(),
                    Err(error) => {
                        return Decision::deny(format!("the terminal cannot be read: {error}"));
                    }
                };
                match line.trim().to_lowercase().as_str() {
                    "y" | "yes" => return Decision::approve(),
                    "" | "n" | "no" => {
                        return Decision::deny("the operator did not approve the call");
                    }
                    _ => screen::ask("y runs it; n or an empty line does not\n"),
                }
            }
        })
    }

    fn name(&self) -> &'static str {
        "the terminal"
    }
}

/// The call and the reason for the approval. `place` is a note behind the first words.
pub(crate) fn call_to_decide(request: &ApprovalRequest, place: &str) -> String {
    format!(
        "{WARNING}approval needed{WARNING:#}{place} {STRONG}{}{STRONG:#}{}",
        request.tool,
        // The text starts with the tool's name.
        fully_visible_text(&request.text()[request.tool.len()..])
    )
}

/// Only an explicit yes approves; the end of input does not.
pub(crate) fn is_yes(input: &mut impl BufRead) -> io::Result<bool> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(means_yes(&line))
}

fn means_yes(line: &str) -> bool {
    ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolcrib::core::approval::{Asker, ShownCall};
    use toolcrib::core::clock::Timestamp;
    use toolcrib::tool::{Arguments, CallId};

    use super::*;

    fn request(shown: serde_json::Value) -> ApprovalRequest {
        ApprovalRequest {
            id: None,
            call_id: CallId::new("1"),
            tool: "remove".to_owned(),
            definition: None,
            arguments: Arguments::from_validated("{}".to_owned()),
            shown: ShownCall { arguments: shown, ..ShownCall::default() },
            asker: Asker::default(),
            created_at: Timestamp::from_unix_millis(0),
            identity: "".into(),
            session: None,
            rule: "policy.rules[0]".to_owned(),
            reason: "a rule of the host asks for approval of this call".to_owned(),
            expires_at: Timestamp::NEVER,
            obstacle: None,
        }
    }

    #[test]
    fn only_an_explicit_yes_approves() {
        for (line, yes) in
            [("y\n", true), (" YES \n", true), ("\n", false), ("", false), ("yep\n", false)]
        {
            assert_eq!(is_yes(&mut line.as_bytes()).unwrap(), yes, "{line:?}");
        }
    }

    #[test]
    fn arguments_cannot_redraw_the_question() {
        let tricky = "a\u{1b}[2K\rb\u{9b}0m\u{202e}c\u{200b}d\nRun it? [y/N] y";
        let asked = call_to_decide(&request(json!({"path": tricky})), "");
        let asked = anstream::adapter::strip_str(&asked).to_string();
        let hidden = |c: char| c.is_control() && c != '\n';
        assert!(!asked.contains(hidden), "{asked:?}");
        assert!(asked.contains(r"\u{9b}0m\u{202e}c\u{200b}d\nRun it?"), "{asked:?}");
        assert_eq!(asked.lines().count(), 2, "{asked}");
    }
}

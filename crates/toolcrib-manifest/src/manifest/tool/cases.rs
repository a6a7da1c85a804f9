//! `tests` and `examples`: example calls in the manifest.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};
use toolcrib_tool::Origin;

use crate::declaration::{Expectation, RecordedAnswer, ToolTest};
use crate::diagnostic::position::{Lines, Span};
use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Node, NodeValue, check_literals};
use crate::fields::{Fields, wrong_type};
use crate::manifest::keys;
use crate::manifest::schema::bad_pattern;
use crate::manifest::schema::checked::Checked;

/// The file of the tests, and the schema of their arguments.
pub(in crate::manifest) struct TestContext<'a> {
    pub(in crate::manifest) file: &'a str,
    pub(in crate::manifest) lines: &'a Lines<'a>,
    pub(in crate::manifest) input: Option<&'a Checked>,
    pub(in crate::manifest) empty_as_absent: &'a [String],
    /// Whether the tool sends a request.
    pub(in crate::manifest) sends: bool,
}

impl TestContext<'_> {
    /// Reads example arguments, each of which must fit the schema.
    pub(in crate::manifest) fn examples(
        &self,
        list: &Node,
        findings: &mut Findings<'_>,
    ) -> Vec<Value> {
        let mut examples = Vec::new();
        for node in list.items() {
            check_literals(node, findings);
            if !matches!(node.value, NodeValue::Mapping(_)) {
                findings.add(wrong_type(node, None, "an example is a mapping of arguments"));
                continue;
            }
            let message = ("bad-example", Severity::Error, "the example does not fit `input`: ");
            self.check_arguments(node, message, findings);
            examples.push(node.to_value());
        }
        examples
    }

    /// Reads tests.
    pub(in crate::manifest) fn tests(
        &self,
        list: &Node,
        findings: &mut Findings<'_>,
    ) -> Vec<ToolTest> {
        let mut seen: HashMap<&str, &Span> = HashMap::new();
        let mut tests = Vec::new();
        for node in list.items() {
            let Some(fields) = Fields::read(node, &keys::TEST, findings) else { continue };
            let identity = fields.node("name").zip(fields.text("name"));
            if let Some((node, name)) = identity {
                if let Some(first) = seen.get(name) {
                    let message = format!("two tests of this tool are called `{name}`");
                    findings.add(
                        Diagnostic::error("duplicate-test", &node.span, message)
                            .label("the same name again")
                            .help("rename one of them")
                            .also(first, "first used here"),
                    );
                } else {
                    seen.insert(name, &node.span);
                }
            }
            let expect = fields
                .node("expect")
                .and_then(|node| Fields::read(node, &keys::EXPECT, findings))
                .map(|fields| expectation(&fields, findings))
                .unwrap_or_default();
            if let Some(args) = fields.node("args") {
                check_literals(args, findings);
                let refused = ["invalid_args", "invalid_json"].map(Some);
                if !refused.contains(&expect.error.as_deref()) {
                    let message = (
                        "test-arguments",
                        Severity::Warning,
                        "the test's arguments do not fit `input`: ",
                    );
                    self.check_arguments(args, message, findings);
                }
            }
            if let Some(ctx) = fields.node("ctx") {
                check_literals(ctx, findings);
            }
            let answer = self.answer(&fields, findings);
            if let Some((node, name)) = identity {
                tests.push(ToolTest {
                    name: name.to_owned(),
                    args: fields.node("args").map_or_else(|| Map::new().into(), Node::to_value),
                    ctx: context(fields.node("ctx")),
                    answer,
                    expect,
                    origin: origin(self.file, self.lines, &node.span),
                });
            }
        }
        tests
    }

    /// Reads the recorded response of the server.
    fn answer(&self, test: &Fields<'_>, findings: &mut Findings<'_>) -> Option<RecordedAnswer> {
        let entry = test.entry("answer")?;
        if !self.sends {
            let message = "`answer` is for tools that send a request, and this one does not";
            findings.add(
                Diagnostic::error("not-for-this-run", &entry.key_span, message)
                    .help("remove it; what a program prints is expected with `text_contains`"),
            );
        }
        let fields = Fields::read(&entry.node, &keys::ANSWER, findings)?;
        let status = fields.integer("status").unwrap_or(200);
        let status = u16::try_from(status).ok().filter(|status| (100..=599).contains(status));
        if let (None, Some(node)) = (status, fields.node("status")) {
            findings.add(
                Diagnostic::error("out-of-range", &node.span, "there is no such status")
                    .help("a status is a number from 100 to 599, such as 200"),
            );
        }
        if let Some((json, text)) = fields.entry("json").zip(fields.entry("text")) {
            let message = "an answer has one body: `json` or `text`";
            findings.add(
                Diagnostic::error("two-bodies", &text.key_span, message)
                    .help("remove one of them")
                    .also(&json.key_span, "the other one"),
            );
        }
        if let Some(json) = fields.node("json") {
            check_literals(json, findings);
        }
        let (body, kind) = match fields.node("json") {
            Some(json) => (json.to_value().to_string(), "application/json"),
            None => (fields.text("text").unwrap_or_default().to_owned(), "text/plain"),
        };
        let media_type = fields.text("type").unwrap_or(kind).to_owned();
        Some(RecordedAnswer { status: status?, media_type, body: body.into_bytes() })
    }

    /// Checks arguments as the executor does: empty texts that mean "absent" are removed first.
    fn check_arguments(
        &self,
        node: &Node,
        message: (&'static str, Severity, &str),
        findings: &mut Findings<'_>,
    ) {
        let Some(input) = self.input else { return };
        let mut value = node.to_value();
        if let Value::Object(arguments) = &mut value {
            let absent = |name: &str, value: &Value| {
                value.as_str() == Some("") && self.empty_as_absent.iter().any(|known| known == name)
            };
            arguments.retain(|name, value| !absent(name, value));
        }
        input.report(&value, node, message, findings);
    }
}

fn context(node: Option<&Node>) -> BTreeMap<String, Value> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().map(|entry| (entry.key.clone(), entry.node.to_value())).collect()
}

fn expectation(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Expectation {
    for value in ["data", "body"].iter().filter_map(|key| fields.node(key)) {
        check_literals(value, findings);
    }
    if let Some((node, pattern)) = fields.node("text_matches").zip(fields.text("text_matches"))
        && regex::Regex::new(pattern).is_err()
    {
        findings.add(bad_pattern(pattern, &node.span));
    }
    Expectation {
        error: fields.text("error").map(str::to_owned),
        argv_contains: fields.texts("argv_contains").unwrap_or_default(),
        argv: fields.texts("argv"),
        url: fields.text("url").map(str::to_owned),
        body: fields.node("body").map(Node::to_value),
        text_contains: fields.texts("text_contains").unwrap_or_default(),
        text_matches: fields.text("text_matches").map(str::to_owned),
        data: fields.node("data").map(Node::to_value),
    }
}

/// The origin of a span, for declarations.
pub(in crate::manifest) fn origin(file: &str, lines: &Lines<'_>, span: &Span) -> Origin {
    let (line, column) = lines.line_column(span.start);
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Origin { file: file.to_owned(), line: narrow(line), column: narrow(column) }
}

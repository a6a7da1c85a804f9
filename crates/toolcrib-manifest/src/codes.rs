//! Every kind of problem there is: its stable name, and what it means.

use crate::diagnostic::Severity;

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code {
    /// Its stable name.
    pub code: &'static str,
    /// How bad it is; a few are less bad in some places.
    pub severity: Severity,
    /// What it means, in one sentence.
    pub summary: &'static str,
}

impl Code {
    /// The kind of that name.
    pub fn find(code: &str) -> Option<&'static Self> {
        CODES.iter().find(|known| known.code == code)
    }
}

/// All kinds, sorted by name.
pub const CODES: &[Code] = &[
    error(
        "ambiguous-scalar",
        "A value without quotes that readers take for different things, where its type is its meaning.",
    ),
    error("bad-argv", "An entry of `argv` that is neither a text, a condition nor a list."),
    error("bad-auth", "An `auth` that names no credentials, or several."),
    error("bad-constraint", "A rule that is none, or that asks about what is not there."),
    error("bad-default", "A default that does not fit the schema it stands in."),
    error("bad-definition", "A tool that the registry cannot take."),
    error("bad-description", "A description that is empty, or too long for any model."),
    error("bad-env-name", "A name that no variable can have."),
    error("bad-example", "Example arguments that do not fit the schema."),
    error("bad-grant", "A file granted to a program that is no path, or no single one."),
    error("bad-header", "A header's name or value that no request can carry."),
    error("bad-icon", "An icon at an address that no client should be sent to."),
    error("bad-key", "A key that is not text, or a merge of something that is no mapping."),
    error("bad-name", "A tool name that providers and clients refuse."),
    error("bad-namespace", "A namespace that no tool name can begin with."),
    error("bad-pattern", "A regular expression that does not compile."),
    error("bad-pointer", "A `select` that is no JSON pointer."),
    error("bad-range", "A range of addresses that is none, or that names an address inside of it."),
    error("bad-reference", "Something between `${` and `}` that is no reference."),
    error("bad-requirement", "A `requires` that is no comparison of versions."),
    error("bad-resource", "A resource without a name."),
    error("bad-schema", "A JSON Schema that is none, or that cannot be used."),
    error("bad-script", "A shell's text that is empty, or too long to be handed over."),
    error("bad-uri", "An address of a resource that is none, or whose variables are none."),
    error(
        "bad-url",
        "A `url` that no request can go to, or that two readers would understand differently.",
    ),
    error("body-of-get", "A body of a request whose method has none."),
    error("body-of-head", "A part of an answer that has no body."),
    error("client-and-run", "A tool that both the client and this server are to run."),
    error(
        "command-and-url",
        "An upstream that is both to be started here and to be reached over HTTP.",
    ),
    warning(
        "contradicting-annotations",
        "Annotations of which one says the opposite of the other.",
    ),
    warning("cut-text", "A text without quotes that a comma has ended."),
    error(
        "dangerous-env",
        "A model's value in a variable that decides what a program loads or runs.",
    ),
    error("duplicate-key", "The same key twice in one mapping."),
    error("duplicate-prompt", "Two prompts of a file with the same name."),
    error("duplicate-resource", "Two resources of a file with the same address."),
    error("duplicate-test", "Two tests of a tool with the same name."),
    error("duplicate-tool", "Two tools of a file with the same name."),
    error("duplicate-upstream", "Two upstreams of a file with the same name."),
    error("duplicate-variable", "A variable that is set in `env` and in `vars`."),
    error("each-of-one", "`each` of an argument that is no list."),
    error("empty-argv", "A command without a program."),
    warning(
        "evaluated-variable",
        "A value that a shell runs as code. An error where it is a model's.",
    ),
    warning(
        "hidden-character",
        "A character that a reader does not see and a model reads, or that changes how the text around it is shown.",
    ),
    warning("idle-approval", "An approval that is never asked for."),
    warning("idle-grant", "A file granted to a program that may open every file anyway."),
    error("invalid-value", "A value that is not allowed there."),
    error("list-as-argument", "A list where exactly one argument of the program stands."),
    error("list-in-path", "A list where the path of a request has room for one value."),
    warning("literal-secret", "A secret that is written into the file."),
    warning("long-description", "A description of which not every provider shows the end."),
    error("misplaced-argument", "An argument that stands where keywords of a schema belong."),
    error("missing-key", "A key that must be there."),
    error("model-chosen-credential", "A model's value in what says who asks."),
    error("model-chosen-program", "A program that a model's value, or a condition, decides on."),
    error("name-too-long", "A name that is too long with its namespace in front."),
    error("newer-format", "A file of a format that this version does not read."),
    error("no-call", "A value of a call where there is no call yet."),
    warning("no-guard", "A range of addresses that holds all of them."),
    error("no-program", "An upstream whose command names no program."),
    error(
        "no-single-content",
        "A message of a prompt, or a resource, that has no content or several, or no address.",
    ),
    error(
        "not-for-client",
        "Something that only a tool that runs here can honour, on one that the client runs.",
    ),
    error(
        "not-for-http",
        "Something that only a program can honour, on a tool that sends a request.",
    ),
    error(
        "not-for-run",
        "Something that only a request can honour, on a tool that runs a program.",
    ),
    error("not-for-this-run", "A key that goes with another way to run a tool."),
    error("not-for-upstream", "A key of the other way to reach an upstream."),
    error("not-in-content", "A reference in a prompt or a resource to what clients did not send."),
    error("not-supported-yet", "A key of the format that this version cannot honour."),
    error("not-utf8", "A file that is not UTF-8 text."),
    warning("nothing-fits", "A schema, or a part of one, that no value fits."),
    error("nothing-required", "A confinement that is required of a profile that has none."),
    error(
        "optional-in-path",
        "A value that a call may leave out, and that the path of a request needs.",
    ),
    error("out-of-range", "A number, time or size outside of what is possible there."),
    warning("plain-credentials", "Credentials that go over the network unencrypted."),
    error("private-address", "A host that no request may go to unless its range is allowed."),
    error("program-from-value", "An upstream whose program a value decides on."),
    hint("provider-differs", "A provider that is told something else than the schema says."),
    warning(
        "provider-refused",
        "A provider whose models cannot be offered the tool. A hint where only its strict mode refuses it.",
    ),
    hint("provider-renamed", "A provider that does not take the tool's name, and is told another."),
    error("read-only-writes", "A tool that only reads, and writes a resource."),
    error("reference-in-env-name", "A value that would become a variable's name."),
    error(
        "reference-in-name",
        "A value that would become the name of a parameter, header, field or key.",
    ),
    error("reference-in-worker", "A value of one call where a worker is started for many."),
    hint("required-default", "An argument that must be given, and has a default."),
    error("requires-newer", "A file that requires another version of toolcrib."),
    error("reserved-header", "A header that says how a request is sent, which the client decides."),
    error("retried-success", "An exit code that means both success and another try."),
    error("run-and-http", "A tool that both runs a program and sends a request."),
    error("secret-in-argv", "A secret where every user of the machine could see it."),
    error("shadowed-argument", "A name that is both an argument and a value of the host."),
    warning("shadowed-name", "A tool whose name another one had first."),
    warning(
        "short-description",
        "A description that does not say what the tool does and when to use it.",
    ),
    error("spliced-script", "A value inside a program's text."),
    error("syntax", "YAML or TOML that cannot be read."),
    warning(
        "test-arguments",
        "Arguments of a test that do not fit the schema, though the test does not say so.",
    ),
    error("test-of-client", "A test that looks at what a tool did that nobody ran here."),
    error("too-complex", "A file that nests too deep, or grows too large with its aliases."),
    error("too-large", "A file larger than any manifest."),
    error("two-bodies", "A request with more than one body."),
    error("two-ways-to-run", "A `run` that says twice what runs."),
    hint("unanchored-pattern", "A pattern that matches anywhere in a value."),
    hint("unannotated", "A tool that does not say what it does to the world."),
    error("uncacheable-tool", "Kept answers of a tool whose calls change something."),
    error("undeclared-argument", "An argument that nobody declared."),
    error("undeclared-context", "A value of the host that nobody declared."),
    hint("undescribed-argument", "An argument that nothing is said about."),
    warning(
        "unguarded-argument",
        "A rule about an argument that may be absent: calls without it are refused.",
    ),
    error("unknown-anchor", "An alias of something that is not defined above it."),
    error("unknown-key", "A key that the format does not have."),
    warning("unknown-keyword", "A keyword that JSON Schema does not have."),
    error("unknown-tag", "A YAML tag, which has no meaning here."),
    hint("unpinned-file", "A file whose bytes a lock does not pin."),
    warning("unquoted-variable", "A variable that a shell makes several words or file names of."),
    error("unreadable", "A file or a directory that cannot be read."),
    error("unrepeatable-tool", "Another try of a tool whose call may have had its effect."),
    hint("untested", "A tool without tests."),
    warning("unused-argument", "An argument that nothing uses."),
    warning("unused-variable", "A variable that a shell's text does not use."),
    error("value-chosen-host", "A value that would decide which server a request goes to."),
    error("wrong-type", "A value of another type than belongs there."),
];

const fn error(code: &'static str, summary: &'static str) -> Code {
    Code { code, severity: Severity::Error, summary }
}

const fn warning(code: &'static str, summary: &'static str) -> Code {
    Code { code, severity: Severity::Warning, summary }
}

const fn hint(code: &'static str, summary: &'static str) -> Code {
    Code { code, severity: Severity::Hint, summary }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// The Rust sources of a folder, those of its folders too.
    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn the_table_is_sorted_and_says_something_of_each() {
        assert!(CODES.is_sorted_by(|a, b| a.code < b.code));
        for code in CODES {
            assert!(code.summary.ends_with('.'), "{}", code.code);
        }
    }

    #[test]
    fn every_diagnostic_of_this_crate_is_in_the_table() {
        let made = regex::Regex::new(
            r#"Diagnostic::(?:error|warning|hint)\(\s*"([a-z0-9-]+)"|unread\(\s*\w+,\s*"([a-z0-9-]+)""#,
        );
        let made = made.unwrap();
        let mut texts = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
        let found: BTreeSet<&str> = texts
            .iter()
            .flat_map(|text| made.captures_iter(text))
            .filter_map(|found| found.get(1).or(found.get(2)))
            .map(|code| code.as_str())
            .collect();
        assert!(found.len() > 50, "the sources are read: {}", found.len());
        let unknown: Vec<_> = found.iter().filter(|code| Code::find(code).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

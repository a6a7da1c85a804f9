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
    /// What to do about it, where the message at its place does not say more.
    pub help: &'static str,
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
        "Quote the value, or write it as the type that is meant.",
    ),
    error(
        "bad-argv",
        "An entry of `argv` that is neither a text, a condition nor a list.",
        "Write an entry as a text, as `{if: argument, then: [...]}` or as `{each: list}`.",
    ),
    error(
        "bad-auth",
        "An `auth` that names no credentials, or several.",
        "Name one of `bearer`, `basic` and `header`, each with a `${secret.name}`.",
    ),
    error(
        "bad-client",
        "A client tool whose kind and the rest of it do not go together.",
        "Write `client: true` with `input`, or `client: {kind: local_shell}`, `{kind: text}`, `{kind: regex, pattern: …}` or `{kind: lark, grammar: …}` without.",
    ),
    error(
        "bad-constraint",
        "A rule that is none, or that asks about what is not there.",
        "Write a CEL expression over `args` and the entries of `context` that is true or false.",
    ),
    error(
        "bad-default",
        "A default that does not fit the schema it stands in.",
        "Change the default, or the schema that refuses it.",
    ),
    error(
        "bad-definition",
        "A tool that the registry cannot take.",
        "Read what the message says is missing or too long, and change the tool's own keys.",
    ),
    error(
        "bad-description",
        "A description that is empty, or too long for any model.",
        "Say in a sentence or two what the tool does, when to use it and when not.",
    ),
    error(
        "bad-env-name",
        "A name that no variable can have.",
        "Use letters, digits and `_`, and no digit in front.",
    ),
    error(
        "bad-example",
        "Example arguments that do not fit the schema.",
        "Make the example a call that the schema takes, or take it out.",
    ),
    error(
        "bad-grant",
        "A file granted to a program that is no path, or no single one.",
        "Grant one file or folder an entry, by its path.",
    ),
    error(
        "bad-header",
        "A header's name or value that no request can carry.",
        "Use the characters that names of headers may have, and no line ends in values.",
    ),
    error(
        "bad-icon",
        "An icon at an address that no client should be sent to.",
        "Write the address of a picture that begins with `https:`, or the picture itself as `data:`.",
    ),
    error(
        "bad-key",
        "A key that is not text, or a merge of something that is no mapping.",
        "Write keys as plain texts; merge mappings only.",
    ),
    error(
        "bad-name",
        "A tool name that providers and clients refuse.",
        "Use letters, digits, `_` and `-`, at most 64 with the namespace.",
    ),
    error(
        "bad-namespace",
        "A namespace that no tool name can begin with.",
        "Use letters, digits, `_` and `-`, and leave room for the tools' own names.",
    ),
    error(
        "bad-pattern",
        "A regular expression that does not compile.",
        "Use a regular expression without look-around and back-references; they run in linear time here.",
    ),
    error(
        "bad-pointer",
        "A `select` that is no JSON pointer.",
        "Begin with `/`, and write `~1` for a `/` and `~0` for a `~` in a name.",
    ),
    error(
        "bad-range",
        "A range of addresses that is none, or that names an address inside of it.",
        "Write a network as `10.20.0.0/16`, with zeros behind the prefix.",
    ),
    error(
        "bad-reference",
        "Something between `${` and `}` that is no reference.",
        "Write `${args.name}`, `${ctx.name}`, `${env.NAME}` or `${secret.name}`; a literal `${` is `$${`.",
    ),
    error(
        "bad-requirement",
        "A `requires` that is no comparison of versions.",
        "Write a comparison such as `>=0.1`.",
    ),
    error(
        "bad-resource",
        "A resource without a name.",
        "Give the resource a name that readers and writers share.",
    ),
    error(
        "bad-schema",
        "A JSON Schema that is none, or that cannot be used.",
        "Write JSON Schema 2020-12 without references to other documents.",
    ),
    error(
        "bad-script",
        "A shell's text that is empty, or too long to be handed over.",
        "Write the text of the shell, or put a long one into a file and name it with `script`.",
    ),
    error(
        "bad-uri",
        "An address of a resource that is none, or whose variables are none.",
        "Write an address as `notes://today`, one with variables as `notes://{day}`.",
    ),
    error(
        "bad-url",
        "A `url` that no request can go to, or that two readers would understand differently.",
        "Write scheme and host out, percent-encode what is not plain, and let values stand for whole parts.",
    ),
    error(
        "body-of-get",
        "A body of a request whose method has none.",
        "Take the body out, or use a method that has one.",
    ),
    error(
        "body-of-head",
        "A part of an answer that has no body.",
        "Use another method, or take out what looks into the answer.",
    ),
    error(
        "client-and-run",
        "A tool that both the client and this server are to run.",
        "Keep `client: true` or the way to run it, not both.",
    ),
    error(
        "command-and-url",
        "An upstream that is both to be started here and to be reached over HTTP.",
        "Keep `command` or `url`, not both.",
    ),
    warning(
        "contradicting-annotations",
        "Annotations of which one says the opposite of the other.",
        "Keep the annotation that is true.",
    ),
    warning(
        "cut-text",
        "A text without quotes that a comma has ended.",
        "Quote the text: inside `{}` and `[]` a comma ends a plain one.",
    ),
    error(
        "dangerous-env",
        "A model's value in a variable that decides what a program loads or runs.",
        "Hand the value over as an argument, on standard input, or in a variable with a name of your own.",
    ),
    error(
        "duplicate-key",
        "The same key twice in one mapping.",
        "Keep one of the two: readers differ in which they take.",
    ),
    error(
        "duplicate-prompt",
        "Two prompts of a file with the same name.",
        "Rename one of the two.",
    ),
    error(
        "duplicate-resource",
        "Two resources of a file with the same address.",
        "Change the address of one of the two.",
    ),
    error("duplicate-test", "Two tests of a tool with the same name.", "Rename one of the two."),
    error("duplicate-tool", "Two tools of a file with the same name.", "Rename one of the two."),
    error(
        "duplicate-upstream",
        "Two upstreams of a file with the same name.",
        "Rename one of the two.",
    ),
    error(
        "duplicate-variable",
        "A variable that is set in `env` and in `vars`.",
        "Keep it in `env` or in `vars`.",
    ),
    error(
        "each-of-one",
        "`each` of an argument that is no list.",
        "Declare the argument as an array, or use a plain entry.",
    ),
    error("empty-argv", "A command without a program.", "Name the program as the first entry."),
    warning(
        "evaluated-variable",
        "A value that a shell runs as code. An error where it is a model's.",
        "Quote the variable, and keep it out of `eval`, arithmetic and command texts.",
    ),
    warning(
        "hidden-character",
        "A character that a reader does not see and a model reads, or that changes how the text around it is shown.",
        "Take the character out, or write it as an escape where it is meant.",
    ),
    warning(
        "idle-approval",
        "An approval that is never asked for.",
        "Take the approval out, or annotate the tool as what it is.",
    ),
    warning(
        "idle-grant",
        "A file granted to a program that may open every file anyway.",
        "Take the grant out, or choose another profile than `trusted`.",
    ),
    error(
        "invalid-value",
        "A value that is not allowed there.",
        "Use one of the values that the message lists.",
    ),
    error(
        "list-as-argument",
        "A list where exactly one argument of the program stands.",
        "Write `{each: name}`, which makes one argument of each item.",
    ),
    error(
        "list-in-path",
        "A list where the path of a request has room for one value.",
        "Let the argument be one value, or move it to the query.",
    ),
    warning(
        "literal-secret",
        "A secret that is written into the file.",
        "Name it in `secrets` of the config and refer to it as `${secret.name}`; then change the secret.",
    ),
    warning(
        "long-description",
        "A description of which not every provider shows the end.",
        "Say the most important first, and leave out what the schema says already.",
    ),
    error(
        "misplaced-argument",
        "An argument that stands where keywords of a schema belong.",
        "Put it below `properties`.",
    ),
    error("missing-key", "A key that must be there.", "Add the key that the message names."),
    error(
        "model-chosen-credential",
        "A model's value in what says who asks.",
        "Use `${secret.name}` or a value of the host, `${ctx.name}`.",
    ),
    error(
        "model-chosen-program",
        "A program that a model's value, or a condition, decides on.",
        "Write the program out, and let values be its arguments.",
    ),
    error(
        "name-too-long",
        "A name that is too long with its namespace in front.",
        "Shorten the name or the namespace: together they may have 64 characters.",
    ),
    warning(
        "needs-trust",
        "A tool or MCP server with profile `trusted`, or with grants that reach the home folder or \
         credentials, or a resource or prompt whose file is outside of the manifest's folder and the \
         workspace, that the operator does not vouch for.",
        "Name it in `manifests.trusted`, run `toolcrib trust`, or give it a narrower profile and grants; \
         move the file of a resource beside the manifest.",
    ),
    error(
        "newer-format",
        "A file of a format that this version does not read.",
        "Use a newer toolcrib, or write the version that this one reads.",
    ),
    error(
        "no-call",
        "A value of a call where there is no call yet.",
        "Refer to `env` and `secret` only: a connection and a worker serve all calls.",
    ),
    warning(
        "no-guard",
        "A range of addresses that holds all of them.",
        "List the networks that are needed, not all addresses.",
    ),
    error(
        "no-program",
        "An upstream whose command names no program.",
        "Name the program as the first entry of `command`.",
    ),
    error(
        "no-single-content",
        "A message of a prompt, or a resource, that has no content or several, or no address.",
        "Give it one of the contents that the message lists.",
    ),
    error(
        "not-for-client",
        "Something that only a tool that runs here can honour, on one that the client runs.",
        "Take the key out, or let this server run the tool.",
    ),
    error(
        "not-for-http",
        "Something that only a program can honour, on a tool that sends a request.",
        "Take the key out: a request has no program.",
    ),
    error(
        "not-for-run",
        "Something that only a request can honour, on a tool that runs a program.",
        "Take the key out: a program sends no request of ours.",
    ),
    error(
        "not-for-this-run",
        "A key that goes with another way to run a tool.",
        "Take the key out, or run the tool in the way that it goes with.",
    ),
    error(
        "not-for-upstream",
        "A key of the other way to reach an upstream.",
        "Take the key out, or reach the server in the other way.",
    ),
    error(
        "not-in-content",
        "A reference in a prompt or a resource to what clients did not send.",
        "Refer to arguments of the prompt, or to variables of the address, only.",
    ),
    error(
        "not-supported-yet",
        "A key of the format that this version cannot honour.",
        "Take the key out until a version honours it.",
    ),
    error("not-utf8", "A file that is not UTF-8 text.", "Save the file as UTF-8."),
    warning(
        "nothing-fits",
        "A schema, or a part of one, that no value fits.",
        "Loosen the parts of the schema that contradict each other.",
    ),
    error(
        "nothing-required",
        "A confinement that is required of a profile that has none.",
        "Choose a profile that confines, or take `require` out.",
    ),
    error(
        "optional-in-path",
        "A value that a call may leave out, and that the path of a request needs.",
        "Require the argument, give it a default, or move it to the query.",
    ),
    error(
        "out-of-range",
        "A number, time or size outside of what is possible there.",
        "Use a number inside of the limits that the message gives.",
    ),
    warning(
        "plain-credentials",
        "Credentials that go over the network unencrypted.",
        "Use `https`, or send nothing that says who asks.",
    ),
    error(
        "private-address",
        "A host that no request may go to unless its range is allowed.",
        "List the network in `allow_private`, if the host is meant.",
    ),
    error(
        "program-from-value",
        "An upstream whose program a value decides on.",
        "Write the program out, and let values be its arguments or variables.",
    ),
    hint(
        "provider-differs",
        "A provider that is told something else than the schema says.",
        "Say it in the description too, if models have to know it.",
    ),
    warning(
        "provider-refused",
        "A provider whose models cannot be offered the tool. A hint where only its strict mode refuses it.",
        "Leave the keyword out, or keep the tool from that provider with a toolset.",
    ),
    hint(
        "provider-renamed",
        "A provider that does not take the tool's name, and is told another.",
        "Choose a name that every provider takes, if it has to be the same everywhere.",
    ),
    error(
        "read-only-writes",
        "A tool that only reads, and writes a resource.",
        "Annotate the tool as one that changes something, or take the resource out of `writes`.",
    ),
    error(
        "reference-in-env-name",
        "A value that would become a variable's name.",
        "Write the variable's name out; a value may be its value.",
    ),
    error(
        "reference-in-name",
        "A value that would become the name of a parameter, header, field or key.",
        "Write the name out; a value may be its value.",
    ),
    error(
        "reference-in-worker",
        "A value of one call where a worker is started for many.",
        "Send it with the call: a worker reads arguments and context with each.",
    ),
    hint(
        "required-default",
        "An argument that must be given, and has a default.",
        "Take the argument out of `required`, or its default out.",
    ),
    error(
        "requires-newer",
        "A file that requires another version of toolcrib.",
        "Use the version that the file requires, or change `requires`.",
    ),
    error(
        "reserved-header",
        "A header that says how a request is sent, which the client decides.",
        "Take the header out: the client sets it.",
    ),
    error(
        "retried-success",
        "An exit code that means both success and another try.",
        "Keep the code in `ok_exit` or in `retry_exit`.",
    ),
    error(
        "run-and-http",
        "A tool that both runs a program and sends a request.",
        "Keep `run` or `http`, not both.",
    ),
    error(
        "secret-in-argv",
        "A secret where every user of the machine could see it.",
        "Hand it over in `env`, on `stdin` or in a header.",
    ),
    error(
        "shadowed-argument",
        "A name that is both an argument and a value of the host.",
        "Rename one of the two.",
    ),
    warning(
        "shadowed-name",
        "A tool, a prompt, a resource or another MCP server whose name another one had first.",
        "Rename it, set a `namespace`, or take one of the two out.",
    ),
    warning(
        "short-description",
        "A description that does not say what the tool does and when to use it.",
        "Say what the tool does, when to use it and what it does not do.",
    ),
    error(
        "spliced-script",
        "A value inside a program's text.",
        "Pass the value as an argument or a variable of its own.",
    ),
    error(
        "syntax",
        "YAML or TOML that cannot be read.",
        "Mend the text at the place that is shown; indent with blanks.",
    ),
    warning(
        "test-arguments",
        "Arguments of a test that do not fit the schema, though the test does not say so.",
        "Change the arguments, or expect `error: invalid_args`.",
    ),
    error(
        "test-of-client",
        "A test that looks at what a tool did that nobody ran here.",
        "Take out what looks at the run, or test the schema only.",
    ),
    error(
        "too-complex",
        "A file that nests too deep, or grows too large with its aliases.",
        "Write it flatter, with fewer aliases.",
    ),
    error(
        "too-large",
        "A file larger than any manifest.",
        "Split the file: each part is a unit of its own.",
    ),
    error("two-bodies", "A request with more than one body.", "Keep one of the bodies."),
    error(
        "two-ways-to-run",
        "A `run` that says twice what runs.",
        "Keep one of `argv`, `script`, `shell` and `worker`.",
    ),
    hint(
        "unanchored-pattern",
        "A pattern that matches anywhere in a value.",
        "Begin with `^` and end with `$`, if the whole value is meant.",
    ),
    hint(
        "unannotated",
        "A tool that does not say what it does to the world.",
        "Say whether it is `read_only`, `destructive`, `idempotent` and `open_world`.",
    ),
    error(
        "uncacheable-tool",
        "Answers that serve again, of a tool whose calls change something.",
        "Take the cache or `dedupe: session` out, or annotate the tool as read-only and idempotent, if it is.",
    ),
    error(
        "undeclared-argument",
        "An argument that nobody declared.",
        "Declare it below `input.properties`, or correct its name.",
    ),
    error(
        "undeclared-context",
        "A value of the host that nobody declared.",
        "Declare it in `context`, or correct its name.",
    ),
    hint(
        "undescribed-argument",
        "An argument that nothing is said about.",
        "Add a `description`, with an example of a value.",
    ),
    warning(
        "unguarded-argument",
        "A rule about an argument that may be absent: calls without it are refused.",
        "Ask `has(args.name)` first, require the argument, or give it a default.",
    ),
    error(
        "unknown-anchor",
        "An alias of something that is not defined above it.",
        "Define the anchor above, or correct its name.",
    ),
    error(
        "unknown-key",
        "A key that the format does not have.",
        "Correct the key's name; keys of your own begin with `x-`.",
    ),
    warning(
        "unknown-keyword",
        "A keyword that JSON Schema does not have.",
        "Correct the keyword's name: what JSON Schema does not know is not checked.",
    ),
    error(
        "unknown-tag",
        "A YAML tag, which has no meaning here.",
        "Take the tag out, and quote the value if it is a text.",
    ),
    warning(
        "unquoted-variable",
        "A variable that a shell makes several words or file names of.",
        "Put it in double quotes.",
    ),
    error(
        "unreadable",
        "A file or a directory that cannot be read.",
        "Check the path and its rights.",
    ),
    error(
        "unrepeatable-tool",
        "Another try of a tool whose call may have had its effect.",
        "Take `retry` out, or annotate the tool as idempotent, if it is.",
    ),
    hint(
        "untested",
        "A tool without tests.",
        "Add a test with `args` and `expect`; `toolcrib test` runs it.",
    ),
    warning(
        "unused-argument",
        "An argument that nothing uses.",
        "Use the argument, or take it out of the schema: models fill in what they see.",
    ),
    warning(
        "unused-variable",
        "A variable that a shell's text does not use.",
        "Use the variable, or take it out of `vars`.",
    ),
    error(
        "value-chosen-host",
        "A value that would decide which server a request goes to.",
        "Write scheme, host and port out; values may be parts of the path and the query.",
    ),
    error(
        "wrong-type",
        "A value of another type than belongs there.",
        "Write a value of the type that the message names.",
    ),
];

const fn error(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Error, summary, help }
}

const fn warning(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Warning, summary, help }
}

const fn hint(code: &'static str, summary: &'static str, help: &'static str) -> Code {
    Code { code, severity: Severity::Hint, summary, help }
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
            assert!(code.help.ends_with('.') && code.help.len() > 12, "{}", code.code);
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

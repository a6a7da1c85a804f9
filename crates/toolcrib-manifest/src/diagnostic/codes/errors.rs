//! Kinds of problems that keep a file from being loaded.

use super::{Code, error};

pub(super) const ERRORS: &[Code] = &[
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
        "A key that is not text or holds an invisible character, or a merge of something that is no mapping.",
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
        "bad-unsafe-argv",
        "An `unsafe_argv` without a reason.",
        "Say why the value is harmless where it stands; `list` and `show` print it.",
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
    error(
        "dangerous-env",
        "A model's value in a variable that decides what a program loads or runs.",
        "Hand the value over as an argument, on standard input, or in a variable with a name of your own.",
    ),
    error(
        "dangling-option",
        "An option that would be left without its value where an optional argument is absent.",
        "Add both together: `{if: name, then: [\"--option\", \"${args.name}\"]}`.",
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
    error(
        "nothing-required",
        "A confinement that is required of a profile that has none.",
        "Choose a profile that confines, or take `require` out.",
    ),
    error(
        "option-from-value",
        "An option whose name comes from a value of the call.",
        "List the options in an `enum`, or write the option and give it the value behind `=` or as an entry of its own.",
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
        "runs-written-file",
        "A shell's text that writes a file in the workspace and runs it.",
        "Write the file to `$TMPDIR`, which belongs to the call.",
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
    error(
        "unknown-tag",
        "A YAML tag, which has no meaning here.",
        "Take the tag out, and quote the value if it is a text.",
    ),
    error(
        "unlisted",
        "More problems of one file than are listed; less bad where only warnings or hints are left out.",
        "Correct the problems that are listed, and check again: the whole file was checked.",
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
    error(
        "unsafe-argument",
        "A value that a program would take for a setting or an action of its own, which can name a program.",
        "Say in the schema what it may be, with an `enum` or a pattern of plain characters; `unsafe_argv: \"reason\"` insists.",
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

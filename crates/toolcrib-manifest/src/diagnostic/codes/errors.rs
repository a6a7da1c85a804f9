//! Kinds of problems that keep a file from being loaded.

use super::{Code, error};

pub(super) const ERRORS: &[Code] = &[
    error(
        "ambiguous-scalar",
        "A value without quotes that readers interpret differently, in a place where its type \
        matters.",
        "Quote the value, or write it in the intended type.",
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
        "A client tool with keys that do not match its kind.",
        "Write `client: true` with `input`, or `client: {kind: local_shell}`, `{kind: text}`, \
         `{kind: regex, pattern: …}` or `{kind: lark, grammar: …}` without.",
    ),
    error(
        "bad-constraint",
        "A rule that cannot be parsed, or that uses an undeclared name.",
        "Write a CEL expression about `args` and the entries of `context` that is true or false.",
    ),
    error(
        "bad-default",
        "A default that does not match its schema.",
        "Change the default or the schema.",
    ),
    error(
        "bad-definition",
        "A tool that the registry refuses.",
        "Change the keys of the tool that the message names.",
    ),
    error(
        "bad-description",
        "A description that is empty or too long.",
        "Say in a sentence or two what the tool does, when to use it and when not.",
    ),
    error(
        "bad-env-name",
        "An invalid name of an environment variable.",
        "Use letters, digits and `_`, not beginning with a digit.",
    ),
    error(
        "bad-example",
        "Example arguments that do not match the schema.",
        "Correct the example, or remove it.",
    ),
    error(
        "bad-grant",
        "A grant that is not the path of one file or folder.",
        "Write one file or folder for each entry, by its path.",
    ),
    error(
        "bad-header",
        "An invalid name or value of a header.",
        "Use only characters that header names allow, and no line ends in values.",
    ),
    error(
        "bad-icon",
        "An icon with a URL from which clients should not load it.",
        "Write a URL that begins with `https:`, or the image itself as `data:`.",
    ),
    error(
        "bad-key",
        "A key that is not text or contains an invisible character, or a merge of something other \
        than a mapping.",
        "Write keys as plain texts; merge mappings only.",
    ),
    error(
        "bad-name",
        "A tool name that providers or clients would refuse.",
        "Use letters, digits, `_` and `-`, at most 64 with the namespace.",
    ),
    error(
        "bad-namespace",
        "A namespace that is not a valid beginning of a tool name.",
        "Use letters, digits, `_` and `-`, and leave room for the names of the tools.",
    ),
    error(
        "bad-pattern",
        "A regular expression that does not compile.",
        "Use a regular expression without look-around and back-references: patterns run in linear \
        time here.",
    ),
    error(
        "bad-pointer",
        "A `select` that is not a JSON pointer.",
        "Begin with `/`, and write `~1` for a `/` and `~0` for a `~` in a name.",
    ),
    error(
        "bad-range",
        "An invalid address range, or an address with a prefix that is not its network.",
        "Write a network as `10.20.0.0/16`, with zeros after the prefix.",
    ),
    error(
        "bad-reference",
        "An invalid reference between `${` and `}`.",
        "Write `${args.name}`, `${ctx.name}`, `${env.NAME}` or `${secret.name}`; a literal `${` \
         is `$${`.",
    ),
    error(
        "bad-requirement",
        "A `requires` that is not a comparison of versions.",
        "Write a comparison such as `>=0.1`.",
    ),
    error(
        "bad-resource",
        "A resource without a name.",
        "Give the resource the name that the tools which read and write it share.",
    ),
    error(
        "bad-schema",
        "A JSON Schema that is invalid or cannot be used.",
        "Write JSON Schema 2020-12 without references to other documents.",
    ),
    error(
        "bad-script",
        "A shell text that is empty or too long.",
        "Write the text, or put a long text into a file and name it with `script`.",
    ),
    error(
        "bad-unsafe-argv",
        "An `unsafe_argv` without a reason.",
        "Say why the value is harmless in its place; `list` and `show` print the reason.",
    ),
    error(
        "bad-uri",
        "An invalid URI of a resource, or a template with invalid variables.",
        "Write a URI as `notes://today` and a template as `notes://{day}`.",
    ),
    error(
        "bad-url",
        "A `url` that is invalid or ambiguous.",
        "Write out scheme and host, percent-encode special characters, and use values for whole \
        parts only.",
    ),
    error(
        "body-of-get",
        "A body for a method without a body.",
        "Remove the body, or use a method with a body.",
    ),
    error(
        "body-of-head",
        "A `select` for a response without a body.",
        "Use another method, or remove `select`.",
    ),
    error(
        "client-and-run",
        "A tool that both the client and this server would run.",
        "Keep `client: true` or the way to run it, not both.",
    ),
    error(
        "command-and-url",
        "An upstream with both a command to start and a URL.",
        "Keep `command` or `url`, not both.",
    ),
    error(
        "dangerous-env",
        "A value of a model in a variable that decides what a program loads or runs.",
        "Pass the value as an argument, on standard input, or in a variable with another name.",
    ),
    error(
        "dangling-option",
        "An option that is left without its value if an optional argument is absent.",
        "Add both together: `{if: name, then: [\"--option\", \"${args.name}\"]}`.",
    ),
    error(
        "duplicate-key",
        "The same key twice in one mapping.",
        "Remove one of the two: readers differ in which one they use.",
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
        "An `each` with an argument that is not a list.",
        "Declare the argument as an array, or use a plain entry.",
    ),
    error("empty-argv", "A command without a program.", "Name the program as the first entry."),
    error(
        "invalid-value",
        "A value that is not allowed in its place.",
        "Use one of the values that the message lists.",
    ),
    error(
        "list-as-argument",
        "A list in the place of one argument of the program.",
        "Write `{each: name}`, which adds one argument for each item.",
    ),
    error(
        "list-in-path",
        "A list in the path of a request, which has room for one value.",
        "Let the argument be one value, or move it to the query.",
    ),
    error(
        "misplaced-argument",
        "An argument in the place of a schema keyword.",
        "Move it into `properties`.",
    ),
    error("missing-key", "A required key is missing.", "Add the key that the message names."),
    error(
        "model-chosen-credential",
        "A value of a model in credentials.",
        "Use `${secret.name}`, or a context value, `${ctx.name}`.",
    ),
    error(
        "model-chosen-program",
        "A program that a value of a model, or a condition, would choose.",
        "Write the program as a literal, and use values only as its arguments.",
    ),
    error(
        "name-too-long",
        "A name that is too long with its namespace.",
        "Shorten the name or the namespace: together they may have 64 characters.",
    ),
    error(
        "newer-format",
        "A file in a version of the format that this program does not read.",
        "Install a newer toolcrib, or use the version that this one reads.",
    ),
    error(
        "no-call",
        "A value of a call in a place where there is no call yet.",
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
        "A key for tools that run here, on a client tool.",
        "Remove the key, or let this server run the tool.",
    ),
    error(
        "not-for-http",
        "A key for programs, on a tool that sends a request.",
        "Remove the key: a request has no program.",
    ),
    error(
        "not-for-run",
        "A key for requests, on a tool that runs a program.",
        "Remove the key: this tool sends no request.",
    ),
    error(
        "not-for-this-run",
        "A key for another way to run a tool.",
        "Remove the key, or run the tool in that way.",
    ),
    error(
        "not-for-upstream",
        "A key for the other way to connect to an upstream.",
        "Remove the key, or connect in the other way.",
    ),
    error(
        "not-in-content",
        "A reference in a prompt or a resource to a value that clients do not send.",
        "Refer only to arguments of the prompt or to variables of the URI template.",
    ),
    error(
        "not-supported-yet",
        "A key of the format that this build does not support.",
        "Remove the key, or use a build that supports it.",
    ),
    error("not-utf8", "A file that is not UTF-8 text.", "Save the file as UTF-8."),
    error(
        "nothing-required",
        "A required confinement for a profile without one.",
        "Choose another profile, or remove `require`.",
    ),
    error(
        "option-from-value",
        "An option whose name is a value of a call. A warning in the text of a shell, where a \
         value may begin with `-`.",
        "List the options in an `enum`, or write the option as a literal, with the value after \
        `=` or in a separate entry. In the text of a shell, write `--` before the value.",
    ),
    error(
        "optional-in-path",
        "An optional value in the path of a request, which always needs it.",
        "Require the argument, give it a default, or move it to the query.",
    ),
    error(
        "out-of-range",
        "A number, time or size outside of the allowed range.",
        "Use a value within the limits in the message.",
    ),
    error(
        "private-address",
        "A host with an address that is not allowed by default.",
        "Add the network to `allow_private`, if the host is intended.",
    ),
    error(
        "program-from-value",
        "An upstream whose program a value would choose.",
        "Write the program as a literal, and use values only as its arguments or variables.",
    ),
    error(
        "read-only-writes",
        "A read-only tool that writes a resource.",
        "Correct the tool's annotations, or remove the resource from `writes`.",
    ),
    error(
        "reference-in-env-name",
        "A value in the name of an environment variable.",
        "Write the name as a literal; references are allowed in its value.",
    ),
    error(
        "reference-in-name",
        "A value in the name of a parameter, header, field or key.",
        "Write the name as a literal; references are allowed in its value.",
    ),
    error(
        "reference-in-worker",
        "A value of a call in the start of a worker, which serves many calls.",
        "Read it from the call: a worker gets the arguments and context of each call.",
    ),
    error(
        "refused-setting",
        "A setting with which no server starts, no program runs, or no run of an agent begins.",
        "Correct the setting, as the message says.",
    ),
    error(
        "requires-newer",
        "A file that requires another version of toolcrib.",
        "Use the version that the file requires, or change `requires`.",
    ),
    error("reserved-header", "A header that the HTTP client sets itself.", "Remove the header."),
    error(
        "retried-success",
        "An exit code that means both success and a retry.",
        "Keep the code in `ok_exit` or in `retry_exit`.",
    ),
    error(
        "run-and-http",
        "A tool that both runs a program and sends a request.",
        "Keep `run` or `http`, not both.",
    ),
    error(
        "runs-written-file",
        "A shell text that writes a file in the workspace and runs it.",
        "Write the file to `$TMPDIR`, which is private to the call.",
    ),
    error(
        "secret-in-argv",
        "A secret that every user of the machine could see.",
        "Pass it in `env`, on `stdin` or in a header.",
    ),
    error(
        "shadowed-argument",
        "A name that is both an argument and a context value.",
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
        "Correct the text at the place shown; indent with spaces.",
    ),
    error(
        "test-of-client",
        "A test of a client tool with expectations about its run.",
        "Remove these expectations, or test only the schema.",
    ),
    error(
        "too-complex",
        "A file that is nested too deeply, or too large after its aliases are expanded.",
        "Use less nesting and fewer aliases.",
    ),
    error("too-large", "A file that is larger than the limit for manifests.", "Split the file."),
    error("two-bodies", "A request with more than one body.", "Keep one of the bodies."),
    error(
        "two-ways-to-run",
        "A `run` with several programs.",
        "Keep one of `argv`, `script`, `shell` and `worker`.",
    ),
    error(
        "uncacheable-tool",
        "A cache or session deduplication for a tool whose calls change something.",
        "Remove `cache` or `dedupe: session`, or annotate the tool as read-only and idempotent, \
        if it is.",
    ),
    error(
        "undeclared-argument",
        "An undeclared argument.",
        "Declare it in `input.properties`, or correct its name.",
    ),
    error(
        "undeclared-context",
        "An undeclared context value.",
        "Declare it in `context`, or correct its name.",
    ),
    error(
        "unknown-anchor",
        "An alias of an anchor that is not defined above it.",
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
        "Remove the tag, and quote the value if it is a text.",
    ),
    error(
        "unlisted",
        "More problems of one file than are listed. Less severe if only warnings or hints are \
        omitted.",
        "Correct the listed problems, then check again: the whole file was checked.",
    ),
    error(
        "unreadable",
        "A file or a directory that cannot be read.",
        "Check the path and its permissions.",
    ),
    error(
        "unrepeatable-tool",
        "Retries of a tool whose failed call may have taken effect.",
        "Remove `retry`, or annotate the tool as idempotent, if it is.",
    ),
    error(
        "unsafe-argument",
        "A value that a program would read as a setting or an action, which can name a program.",
        "Restrict the value in the schema with an `enum` or a pattern of plain characters, or \
        allow it with `unsafe_argv: \"reason\"`.",
    ),
    error(
        "value-chosen-host",
        "A value that would choose the server of a request.",
        "Write scheme, host and port as literals; values are allowed in the path and the query. A \
         secret may hold the whole URL: `url: \"${secret.name}\"`.",
    ),
    error("wrong-type", "A value of the wrong type.", "Write a value of the type in the message."),
];

//! Kinds of problems that do not keep a file from being loaded.

use super::{Code, hint, warning};

pub(super) const REMARKS: &[Code] = &[
    hint(
        "answer-in-exit-code",
        "A program that reports a result in its exit code, such as `grep` without a match, in a \
        tool for which only 0 means success.",
        "List the codes that are results: `ok_exit: [0, 1]`.",
    ),
    warning(
        "capped-timeout",
        "A `timeout` that is longer than the config's limit for all calls.",
        "Write at most `executor.max_timeout` of the config, or raise that.",
    ),
    warning(
        "contradicting-annotations",
        "Two annotations that contradict each other, or `read_only` for a command that changes things.",
        "Keep the annotation that is true.",
    ),
    warning(
        "cut-text",
        "A text without quotes that is cut at a comma or at a `#`.",
        "Quote the text: inside `{}` and `[]` a comma ends a plain text, and everywhere ` #` begins a comment.",
    ),
    hint(
        "doubled-namespace",
        "A name that begins with the `namespace` of its file, which is put before it once more.",
        "Write the name without the namespace.",
    ),
    hint(
        "emptied-input",
        "An optional argument in a text for standard input: without the argument the program gets \
        no input.",
        "Require the argument, or give it a default.",
    ),
    warning(
        "evaluated-variable",
        "A value that a shell, or the code of an interpreter, runs as code. An error where it is \
         a model's \
         and a shell runs it.",
        "Keep the value out of `eval`, expressions and texts of commands, or give the argument \
         `type: integer`. Pass it as an argument, which is data.",
    ),
    warning(
        "folded-script",
        "A shell text whose lines YAML joins to one line.",
        "Write `text: |`, which keeps the lines.",
    ),
    warning(
        "hidden-character",
        "A character that people do not see but models read, or that changes how the text around \
        it is shown.",
        "Remove the character, or write it as an escape if it is intended.",
    ),
    warning(
        "idle-approval",
        "An approval that is never asked for.",
        "Remove `approval`, or correct the annotations of the tool.",
    ),
    warning(
        "idle-grant",
        "A grant without effect: a trusted program may open every file anyway, and no confined program may change the server's own files.",
        "Remove the grant, or choose another profile or another folder.",
    ),
    warning(
        "idle-unsafe-argv",
        "An `unsafe_argv` where no value chooses a program or is run.",
        "Remove it: nothing here needs it.",
    ),
    hint(
        "endless-program",
        "A program that does not end by itself, in a tool without a time limit of its own.",
        "Let it end, for example after a number of lines, or set `limits: {timeout: 1m}`.",
    ),
    warning(
        "no-terminal",
        "An option that asks for a terminal, which no call has.",
        "Remove the option.",
    ),
    warning(
        "not-understood",
        "Something of which nobody knows what it does with a value: a program that gets one on standard input and is \
         not known to treat it as data, or an expansion of another shell.",
        "Pass the value as an argument, or write the expansion in another way; if the value is data there, say why: \
         `unsafe_argv: reason`.",
    ),
    hint(
        "insisted-value",
        "A value that may choose a program or be run, which only `unsafe_argv` allows.",
        "Check whether the reason still holds; without `unsafe_argv` this is an error.",
    ),
    warning(
        "literal-secret",
        "A secret that is written into the file.",
        "Declare it in `secrets` of the config and refer to it as `${secret.name}`; then replace \
        the secret, because it was exposed.",
    ),
    warning(
        "loaded-code",
        "A program that loads modules or settings from the workspace, where other tools may write: Python without \
         `PYTHONSAFEPATH`, `-I.` of Perl and Ruby, `require` in code of Node.js and Lua, R, octave, ghci and erl; and a text \
         that runs a file whose name or folder only the shell knows.",
        "Follow the hint: an option keeps most programs from it; others start beside the manifest (`cwd`). Write the \
         names of files that are run as literals.",
    ),
    warning(
        "long-description",
        "A description that some providers cut off.",
        "Say the most important things first, and omit what the schema already says.",
    ),
    hint(
        "missing-grant",
        "A path of `read` or `write` in `sandbox` that does not exist on the machine on which the check runs.",
        "Correct the path, or make it before the tool is called: until then it grants nothing.",
    ),
    hint(
        "missing-secret",
        "A secret that the config names and that this machine does not have.",
        "Supply it where the server runs, or correct where the config says it is.",
    ),
    warning(
        "unmatched-name",
        "A name in the config that no tool, manifest, prompt, resource or toolset has.",
        "Correct the name, or remove the entry.",
    ),
    hint(
        "missing-program",
        "A program that is not on the `PATH` of the machine on which the check runs.",
        "Install it where the server runs, or correct its name.",
    ),
    warning(
        "missing-folder",
        "A `cwd` that does not exist when the manifest is checked.",
        "Create the folder, or correct `cwd`.",
    ),
    warning(
        "missing-script",
        "A script, or another file that a program runs, such as a makefile or a playbook, that does not exist.",
        "Put it where the program looks for it, or correct its name.",
    ),
    warning(
        "ungranted-file",
        "A file that a program runs and that its profile does not let it read.",
        "Grant it: `sandbox: {read: [/path/of/the/file]}`, or move it into the workspace.",
    ),
    warning(
        "needs-home",
        "A program that looks for its settings in the home directory, although its HOME is a \
        scratch folder.",
        "Pass HOME on and grant the folder, or set a variable with the path of the settings.",
    ),
    warning(
        "needs-network",
        "A program that needs the network under a profile without network access.",
        "Add `sandbox: {profile: workspace+net}`.",
    ),
    warning(
        "needs-trust",
        "A tool or MCP server with profile `trusted`, or with grants that reach the home folder or \
         credentials, or a resource or prompt whose file is outside of the manifest's folder and the workspace, that the operator does not trust.",
        "Name it in `manifests.trusted`, run `toolcrib trust`, or give it a narrower profile and \
         grants; \
         move the file of a resource beside the manifest.",
    ),
    warning(
        "needs-processes",
        "A program that reads information about all processes, under a profile that hides them.",
        "Grant `read: [/proc]` in `sandbox`; `ps`, `pkill` and `killall` need profile `trusted`. Both need the \
         operator's trust.",
    ),
    warning(
        "needs-trusted",
        "A program that needs services or privileges of the machine, under a confined profile.",
        "Add `sandbox: {profile: trusted}`, which needs the operator's trust.",
    ),
    warning(
        "chosen-target",
        "A value that chooses freely what a program reaches or does.",
        "Write the fixed part as a literal, or list what the value may be in an `enum`.",
    ),
    hint(
        "no-end-of-options",
        "A free text that a program may read as an option.",
        "Put `\"--\"` before it.",
    ),
    warning(
        "option-from-input",
        "Words of standard input that `xargs` passes to a program, which may read them as options.",
        "Put `\"--\"` at the end of the arguments of the program that `xargs` starts.",
    ),
    warning(
        "no-guard",
        "An address range that contains all addresses.",
        "List the networks that are needed, not all addresses.",
    ),
    warning(
        "nothing-fits",
        "A schema, or a part of one, that no value matches.",
        "Loosen the parts of the schema that contradict each other.",
    ),
    warning(
        "plain-credentials",
        "Credentials that go over the network unencrypted.",
        "Use `https`, or send no credentials.",
    ),
    hint(
        "provider-differs",
        "A provider that gets a schema with another meaning.",
        "Repeat the rule in the description, if models have to know it.",
    ),
    warning(
        "provider-refused",
        "A provider that refuses the tool. A hint if only its strict mode refuses it.",
        "Remove the keyword, or exclude the tool for this provider with a toolset.",
    ),
    hint(
        "provider-renamed",
        "A provider that refuses the tool's name and therefore gets another one.",
        "Choose a name that every provider accepts, if it has to be the same everywhere.",
    ),
    hint(
        "required-default",
        "A required argument with a default.",
        "Remove the argument from `required`, or remove its default.",
    ),
    warning(
        "shadowed-name",
        "A tool, a prompt, a resource or another MCP server whose name is already taken.",
        "Rename it, set a `namespace`, or remove one of the two.",
    ),
    warning(
        "shell-mistake",
        "A text that its shell does not run, or in which words do something else than they seem to; and a \
         command of shells in the place of a program.",
        "Follow the hint: write `shell: bash` for features of bash, and check the quotes and blanks.",
    ),
    warning(
        "shell-syntax",
        "Shell syntax where there is no shell.",
        "Write the intended value, or use a shell text: `run: {shell: sh, text: …, vars: {…}}`.",
    ),
    warning(
        "short-description",
        "A description that does not say what the tool does and when to use it.",
        "Say what the tool does, when to use it and what it does not do.",
    ),
    warning(
        "spliced-filter",
        "A value inside the filter of jq: a quote in the value would change what the filter does.",
        "Hand the value over with `--arg name value`, and write `$name` in the filter.",
    ),
    warning(
        "spliced-json",
        "A value between quotes in a JSON text: a quote in the value would end the string.",
        "Pass an argument of `type: object`, which is written as JSON, or use `worker`; in `http` \
         write \
         `json` instead of `text`.",
    ),
    warning(
        "test-arguments",
        "Arguments of a test that do not match the schema, although the test does not expect that.",
        "Change the arguments, or expect `error: invalid_args`.",
    ),
    hint(
        "unanchored-pattern",
        "A pattern that matches anywhere in a value.",
        "Begin with `^` and end with `$`, if the whole value has to match.",
    ),
    hint(
        "unannotated",
        "A tool without annotations of its effects.",
        "Annotate whether it is `read_only`, `destructive`, `idempotent` and `open_world`.",
    ),
    hint(
        "undescribed-argument",
        "An argument without a description.",
        "Add a `description`, with an example of a value.",
    ),
    warning(
        "unguarded-argument",
        "A rule about an optional argument: calls without it are refused.",
        "Test `has(args.name)` first, require the argument, or give it a default.",
    ),
    warning(
        "unknown-keyword",
        "A keyword that JSON Schema does not have.",
        "Correct the keyword's name: JSON Schema ignores unknown keywords.",
    ),
    warning(
        "unknown-secret",
        "A secret that the config does not have.",
        "Correct the name, or add the secret to the config.",
    ),
    warning(
        "unstartable-script",
        "A script that does not begin with `#!`, the line that names its interpreter.",
        "Begin it with a line such as `#!/bin/sh` or `#!/usr/bin/env python3`.",
    ),
    warning(
        "unquoted-variable",
        "A variable that a shell splits into words or expands to file names.",
        "Put it in double quotes.",
    ),
    hint(
        "untested",
        "A tool without tests.",
        "Add a test with `args` and `expect`; `toolcrib test` runs it.",
    ),
    warning(
        "unused-argument",
        "An argument that nothing uses.",
        "Use the argument, or remove it from the schema: models fill in every argument that they \
        see.",
    ),
    warning(
        "unused-variable",
        "A variable that a shell's text does not use.",
        "Use the variable, or remove it from `vars`.",
    ),
    warning(
        "unreplaced-reference",
        "A text that looks like a reference of another template language.",
        "Write references as `${args.name}`, `${ctx.name}`, `${env.NAME}` or `${secret.name}`.",
    ),
    warning(
        "null-default",
        "A default of null for an argument that cannot be null: it is read as no default.",
        "Remove the default; an argument that is absent has no value.",
    ),
    warning(
        "idle-keyword",
        "A keyword of JSON Schema that has no effect on values of the given type.",
        "Use the keyword for values of this type, or correct the type.",
    ),
    hint(
        "unasserted-format",
        "A format that informs models but does not refuse values.",
        "Write `assert_formats: true` in the tool, or give the argument a `pattern`.",
    ),
];

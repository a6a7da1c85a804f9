//! Kinds of problems with which a file is loaded all the same.

use super::{Code, hint, warning};

pub(super) const REMARKS: &[Code] = &[
    hint(
        "answer-in-exit-code",
        "A program that answers with its exit code, such as `grep` without a match, in a tool that takes \
         only 0 for success.",
        "Write the codes that are answers: `ok_exit: [0, 1]`.",
    ),
    warning(
        "capped-timeout",
        "A `timeout` that is longer than the config lets any call take.",
        "Write at most `executor.max_timeout` of the config, or raise that.",
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
    hint(
        "emptied-input",
        "An argument that a call may leave out, within a text for standard input: without it the program \
         reads nothing.",
        "Require the argument, or give it a default.",
    ),
    warning(
        "evaluated-variable",
        "A value that a shell, or the code of an interpreter, runs as code. An error where it is a model's \
         and a shell runs it.",
        "Quote the variable, and keep it out of `eval`, arithmetic and command texts. Use arguments as data.",
    ),
    warning(
        "folded-script",
        "A text of a shell whose lines YAML joins to one.",
        "Write `text: |`, which keeps the lines.",
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
    warning(
        "idle-unsafe-argv",
        "An `unsafe_argv` where no value chooses a program or is run.",
        "Take it out: nothing here needs it.",
    ),
    hint(
        "insisted-value",
        "A value that may choose a program or be run, which only `unsafe_argv` allows.",
        "Look whether the reason still holds; without `unsafe_argv` this is an error.",
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
        "A program that is not on the `PATH` of the machine that checks.",
        "Install it where the server runs, or correct its name.",
    ),
    warning(
        "missing-folder",
        "A `cwd` that is not there when the manifest is checked.",
        "Make the folder, or correct `cwd`.",
    ),
    warning(
        "missing-script",
        "A script, or a file that an interpreter or a worker runs, that is not there.",
        "Put it beside the manifest, or correct its name.",
    ),
    warning(
        "needs-home",
        "A program that looks for its settings in the home directory, where its HOME is a scratch folder.",
        "Pass HOME on and grant the folder, or name the settings in a variable.",
    ),
    warning(
        "needs-network",
        "A program that needs the network under a profile that has none.",
        "Add `sandbox: {profile: workspace+net}`.",
    ),
    warning(
        "needs-trust",
        "A tool or MCP server with profile `trusted`, or with grants that reach the home folder or \
         credentials, or a resource or prompt whose file is outside of the manifest's folder and the \
         workspace, that the operator does not vouch for.",
        "Name it in `manifests.trusted`, run `toolcrib trust`, or give it a narrower profile and grants; \
         move the file of a resource beside the manifest.",
    ),
    warning(
        "needs-processes",
        "A program that looks at all processes, under a profile that hides them.",
        "Grant `read: [/proc]` in `sandbox`; it needs the operator's word.",
    ),
    warning(
        "needs-trusted",
        "A program that needs the services or rights of the machine under a confined profile.",
        "Add `sandbox: {profile: trusted}`, which needs the word of the operator.",
    ),
    hint(
        "no-end-of-options",
        "A free text where a program may take it for an option.",
        "Put `\"--\"` before it.",
    ),
    warning(
        "no-guard",
        "A range of addresses that holds all of them.",
        "List the networks that are needed, not all addresses.",
    ),
    warning(
        "nothing-fits",
        "A schema, or a part of one, that no value fits.",
        "Loosen the parts of the schema that contradict each other.",
    ),
    warning(
        "plain-credentials",
        "Credentials that go over the network unencrypted.",
        "Use `https`, or send nothing that says who asks.",
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
    hint(
        "required-default",
        "An argument that must be given, and has a default.",
        "Take the argument out of `required`, or its default out.",
    ),
    warning(
        "shadowed-name",
        "A tool, a prompt, a resource or another MCP server whose name another one had first.",
        "Rename it, set a `namespace`, or take one of the two out.",
    ),
    warning(
        "shell-syntax",
        "What only a shell would understand, where there is none.",
        "Write what is meant, or a text for a shell: `run: {shell: sh, text: …, vars: {…}}`.",
    ),
    warning(
        "short-description",
        "A description that does not say what the tool does and when to use it.",
        "Say what the tool does, when to use it and what it does not do.",
    ),
    warning(
        "spliced-json",
        "A value between the quotes of a JSON text, which a quote in the value ends.",
        "Pass an argument of `type: object`, which is written as JSON, or use `worker`; in `http` write \
         `json` instead of `text`.",
    ),
    warning(
        "test-arguments",
        "Arguments of a test that do not fit the schema, though the test does not say so.",
        "Change the arguments, or expect `error: invalid_args`.",
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
    warning(
        "unknown-keyword",
        "A keyword that JSON Schema does not have.",
        "Correct the keyword's name: what JSON Schema does not know is not checked.",
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
        "A variable that a shell makes several words or file names of.",
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
        "Use the argument, or take it out of the schema: models fill in what they see.",
    ),
    warning(
        "unused-variable",
        "A variable that a shell's text does not use.",
        "Use the variable, or take it out of `vars`.",
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
        "A keyword of JSON Schema that says nothing about values of the type beside it.",
        "Write the keyword that bounds values of this type, or correct the type.",
    ),
    hint(
        "unasserted-format",
        "A format that describes the argument to models and refuses no value.",
        "Write `assert_formats: true` in the tool, or give the argument a `pattern`.",
    ),
];

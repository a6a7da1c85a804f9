//! Programs that act on containers, clusters and other machines.

use super::values;
use crate::manifest::program::known::program::{NONE, Program, Rest, WRAPPED};
use crate::manifest::schema::value_shape::Shape;

const CONTAINER_EXEC: Program = Program {
    names: &["exec"],
    valued: &[
        "-e",
        "--env",
        "--env-file",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--detach-keys",
        "-c",
        "--container",
        "-n",
        "--namespace",
        "--context",
        "--pod-running-timeout",
        "-f",
        "--filename",
        "--index",
    ],
    rest: Rest::Program(1),
    instead: WRAPPED,
    ..NONE
};

/// A shell in a container, unless a program is named.
const CONTAINER_SHELL: Program = Program { names: &["rsh"], runs_stdin: true, ..CONTAINER_EXEC };

const CONTAINER_RUN: Program = Program {
    names: &["run", "create"],
    valued: &[
        "-e",
        "--env",
        "--env-file",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--name",
        "-v",
        "--volume",
        "-p",
        "--publish",
        "--network",
        "--net",
        "-m",
        "--memory",
        "--cpus",
        "-l",
        "--label",
        "--mount",
        "-h",
        "--hostname",
        "--pull",
        "--platform",
        "--restart",
        "--tmpfs",
        "--cap-drop",
        "--cap-add",
        "--security-opt",
        "--ulimit",
        "--add-host",
        "--dns",
        "--log-driver",
        "--gpus",
        "--pids-limit",
        "--shm-size",
        "--ip",
        "--link",
    ],
    code: &["--entrypoint"],
    rest: Rest::Place,
    instead: "write the image as a separate literal and give its program the value as an argument",
    ..NONE
};

const KUBERNETES_APPLY: Program = Program {
    names: &["apply", "create", "replace", "run", "debug", "config"],
    valued: &["-n", "--namespace", "--context"],
    code: &[
        "-f",
        "--filename",
        "-k",
        "--kustomize",
        "--image",
        "--overrides",
        "--kubeconfig",
        "--exec-command",
        "--exec-arg",
    ],
    instead: "write it as a literal, or list what it may be in an `enum`",
    ..NONE
};

/// `-f` takes no value here.
const KUBERNETES_LOGS: Program = Program {
    names: &["logs"],
    valued: &[
        "-n",
        "--namespace",
        "--context",
        "-c",
        "--container",
        "--since",
        "--since-time",
        "--tail",
        "-l",
        "--selector",
        "--limit-bytes",
        "--pod-running-timeout",
        "--max-log-requests",
    ],
    code: &["--kubeconfig"],
    instead: "write it as a literal, or list what it may be in an `enum`",
    ..NONE
};

const COMPOSE: Program = Program {
    names: &["compose"],
    valued: values::COMPOSE,
    code: &["-f", "--file", "--project-directory", "--env-file"],
    rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_RUN]),
    instead: "write the file as a literal, or list what it may be in an `enum`",
    ..NONE
};

const CONTAINER_BUILD: Program = Program {
    names: &["build"],
    valued: &["-t", "--tag", "--build-arg", "--target", "--platform"],
    code: &["-f", "--file"],
    rest: Rest::Code(0),
    instead: "write the folder as a literal: what its Dockerfile says is run",
    ..NONE
};

const ANSIBLE: &str = "Ansible runs `{{ lookup('pipe', …) }}` of what stands there: list the \
 values in \
    an `enum`, or give their strings a pattern such as `^[a-z0-9.]+$`";

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["kubectl", "oc"],
        valued: &[
            "-n",
            "--namespace",
            "--context",
            "--cluster",
            "-s",
            "--server",
            "--as",
            "--user",
            "-o",
            "--output",
            "-l",
            "--selector",
            "--field-selector",
            "-c",
            "--container",
            "--since",
            "--since-time",
            "--tail",
            "-f",
            "--filename",
            "--request-timeout",
            "--sort-by",
            "--limit-bytes",
            "-L",
            "--label-columns",
            "--chunk-size",
            "--timeout",
            "--replicas",
            "--grace-period",
        ],
        // A plugin that such a file names is run.
        code: &["--kubeconfig"],
        rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_SHELL, KUBERNETES_APPLY, KUBERNETES_LOGS]),
        instead: "write it as a literal, or list what it may be in an `enum`",
        ..NONE
    },
    Program {
        names: &["docker", "podman", "nerdctl", "lxc"],
        valued: &["-H", "--host", "-c", "--context", "--config", "-l", "--log-level"],
        rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_RUN, CONTAINER_BUILD, COMPOSE]),
        ..NONE
    },
    Program { names: &["docker-compose", "podman-compose"], ..COMPOSE },
    Program {
        names: &["crictl", "ctr"],
        rest: Rest::Commands(&[CONTAINER_EXEC, CONTAINER_RUN]),
        ..NONE
    },
    Program {
        names: &["ansible", "ansible-inventory", "ansible-vault"],
        files: &["-i", "--inventory", "--vault-password-file", "--vault-pass-file"],
        valued: values::ANSIBLE,
        code: &["-m", "--module-name", "-a", "--args", "-e", "--extra-vars", "-M"],
        harmless: Shape::Word,
        instead: ANSIBLE,
        ..NONE
    },
    Program {
        names: &["ansible-playbook", "ansible-pull"],
        files: &["-i", "--inventory", "--vault-password-file", "--vault-pass-file"],
        valued: &[
            "-l",
            "--limit",
            "-u",
            "--user",
            "-f",
            "--forks",
            "-t",
            "--tags",
            "--skip-tags",
            "--start-at-task",
        ],
        code: &["-e", "--extra-vars", "-M"],
        rest: Rest::Code(0),
        harmless: Shape::Word,
        instead: ANSIBLE,
        ..NONE
    },
];

//! Clients of databases, which run commands of their own.

use crate::manifest::program::known::program::{Dash, NONE, Program, Rest};

const STATEMENT: &str = "use a worker or a script that hands the value to the database as a \
    parameter: `run: {worker: [python3, query.py]}`";

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: &["psql"],
        valued: &[
            "-h",
            "--host",
            "-p",
            "--port",
            "-U",
            "--username",
            "-d",
            "--dbname",
            "-v",
            "--set",
            "--variable",
            "-o",
            "--output",
            "-F",
            "-R",
            "-P",
            "-L",
            "-T",
        ],
        code: &["-c", "--command", "-f", "--file"],
        complete: true,
        runs_stdin: true,
        instead: "psql runs `\\!` in a shell; use a worker or a script that hands the value to the \
                  database as a parameter: `run: {worker: [python3, query.py]}`",
        ..NONE
    },
    Program {
        names: &["mysql", "mariadb"],
        valued: &["-h", "--host", "-P", "--port", "-u", "--user", "-D", "--database", "-S"],
        code: &["-e", "--execute", "--init-command", "--pager"],
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
    Program {
        names: &["sqlite3", "duckdb"],
        valued: &[
            "-separator",
            "-nullvalue",
            "-newline",
            "-mmap",
            "-vfs",
            "-maxsize",
            "-heap",
            "-escape",
            "-nonce",
            "-lookaside",
            "-pagecache",
        ],
        code: &["-cmd", "-init", "-c", "-s", "-f"],
        rest: Rest::Each(1),
        dash: Dash::Word,
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
    Program {
        names: &["clickhouse-client", "sqlcmd", "sqlplus", "snowsql", "usql"],
        code: &["--eval", "-q", "--query", "-Q", "-f", "-i", "-c"],
        runs_stdin: true,
        instead: STATEMENT,
        ..NONE
    },
];

//! The regular run: each goal is a test over the rows of the covering array that contain it.

use std::sync::OnceLock;
use std::time::Duration;

use toolcrib_testkit::covering::{covering, every_two, product};

use crate::dimensions::{Files, Goal, Right, Row, Surface, Tool};
use crate::possible::possible;
use crate::report;
use crate::run::{NOT_ROOT, TIME_OVER, Verdict, run};

/// The maximum number of rows of the regular run.
const MOST: usize = 1_000;

fn all() -> Vec<Row> {
    let rows = product(Row::SIZES, |values| possible(&Row::of(values)));
    rows.iter().map(|values| Row::of(values)).collect()
}

/// The rows of the regular run: every pair of values of two dimensions. In addition, every attack (a tool and a goal)
/// meets each layout and each user with a client that may call, and every client tries each goal that depends on the
/// client.
fn gate(all: &[Row]) -> Vec<Row> {
    let about_clients = [Goal::OwnApproval, Goal::OthersRun, Goal::OthersSpill, Goal::OthersKey];
    let values = |row: &Row| {
        let client = row.right as usize * Surface::ALL.len() + row.surface as usize;
        let attack = row.tool as usize * Goal::ALL.len() + row.goal as usize;
        let refused = matches!(row.right, Right::Observe | Right::WrongToken | Right::NoToken);
        let none = Tool::ALL.len() * Goal::ALL.len();
        vec![
            row.right as usize,
            row.surface as usize,
            row.layout as usize,
            row.files as usize,
            row.user as usize,
            row.tool as usize,
            row.goal as usize,
            if refused { none } else { attack },
            if about_clients.contains(&row.goal) { client } else { none },
        ]
    };
    let mut couples = every_two(Row::SIZES.len());
    couples.extend([(7, 2), (7, 4), (8, 6)]);
    let values: Vec<_> = all.iter().map(values).collect();
    covering(&values, &couples).into_iter().map(|place| all[place]).collect()
}

/// The requested rows: those whose name contains the words of `TOOLCRIB_RED_TEAM_ROWS`, of all rows
/// if it begins with `all`, otherwise of the covering array.
fn chosen() -> (Vec<Row>, Duration) {
    let asked = std::env::var("TOOLCRIB_RED_TEAM_ROWS").unwrap_or_default();
    let mut words: Vec<&str> = asked.split_whitespace().collect();
    let whole = words.first() == Some(&"all");
    if whole {
        words.remove(0);
    }
    let all = all();
    let open_once = |row: &Row| {
        let attack = row.attack();
        row.right == Right::Call
            && row.files == Files::Present
            && ONCE_OPEN.iter().any(|(_, attacks)| attacks.contains(&attack.as_str()))
    };
    let rows = match (whole, expects_reached()) {
        (true, false) => all,
        (_, true) => all.into_iter().filter(open_once).collect(),
        (false, false) => gate(&all),
    };
    let rows = rows.into_iter().filter(|row| words.iter().all(|word| row.name().contains(word)));
    (rows.collect(), Duration::from_secs(if whole { 40 * 60 } else { 10 * 60 }))
}

/// Goals that the program does not protect yet: tried and reported, but not failures.
const OPEN: &[Goal] = &[];

/// All rows, tried once for all tests.
fn verdicts() -> &'static [(Row, Verdict)] {
    static VERDICTS: OnceLock<Vec<(Row, Verdict)>> = OnceLock::new();
    VERDICTS.get_or_init(|| {
        let (rows, limit) = chosen();
        let verdicts = run(&rows, limit);
        let report = report::text(&verdicts);
        println!("{report}");
        if let Some(file) = std::env::var_os("TOOLCRIB_RED_TEAM_REPORT") {
            std::fs::write(file, report).unwrap();
        }
        verdicts
    })
}

/// The attacks of which at least one must succeed with `TOOLCRIB_RED_TEAM_EXPECT=reached`, on a program without a
/// control plane, as a proof that they work.
const ONCE_OPEN: &[(&str, &[&str])] = &[
    ("a jailed program has a manifest loaded that runs unconfined", &["run_unconfined::bash"]),
    ("file tools alone have code run by Git", &["run_unconfined::git_status"]),
    ("a log tool reads the home folder", &["home_key::tail_log", "home_key::search_log"]),
    ("file_read gives the operator's token away", &["operator_token::file_read"]),
    ("who may call approves over MCP", &["own_approval::letter"]),
    ("a file tool replaces what a manifest runs", &["write_script::file_write"]),
    ("a working folder is swapped for a link", &["cwd_link::cwd"]),
    ("a grant is swapped for a link", &["grant_link::grant"]),
    ("an interpreter line grants a file outside", &["interpreter_line::program"]),
    ("a datagram leaves the jail", &["unix_datagram::bash", "unix_datagram::command"]),
    ("a set-user-ID file is made", &["set_id::bash", "set_id::command"]),
    ("file_write replaces the helper", &["write_server::file_write", "run_unconfined::file_write"]),
    ("a grant of the temporary folder reaches the homes of others", &["others_home::temporary"]),
    ("a program rewrites the audit log and the state", &["write_records::bash"]),
];

fn expects_reached() -> bool {
    std::env::var("TOOLCRIB_RED_TEAM_EXPECT").is_ok_and(|expected| expected == "reached")
}

#[test]
fn what_was_open_once_is_reached_where_nothing_guards_it() {
    if !expects_reached() {
        return;
    }
    let reached = |attack: &&str| {
        verdicts().iter().any(|(row, verdict)| {
            row.attack() == **attack && matches!(verdict, Verdict::Reached(_))
        })
    };
    let missed: Vec<_> =
        ONCE_OPEN.iter().filter(|(_, attacks)| !attacks.iter().any(reached)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Fails with the rows in which one of the goals was reached.
fn held(goals: &[Goal]) {
    if expects_reached() {
        return;
    }
    let reached: Vec<String> = verdicts()
        .iter()
        .filter(|(row, _)| goals.contains(&row.goal) && !OPEN.contains(&row.goal))
        .filter_map(|(row, verdict)| match verdict {
            Verdict::Reached(damage) => Some(format!("{}: {}", row.name(), damage.join("; "))),
            _ => None,
        })
        .collect();
    assert!(reached.is_empty(), "{} rows were reached:\n{}", reached.len(), reached.join("\n"));
}

/// A row that could not be tried proves nothing: a server that does not start, or a deed that fails where it is
/// allowed.
#[test]
fn every_row_was_tried() {
    if expects_reached() {
        return;
    }
    let untried: Vec<String> = verdicts()
        .iter()
        .filter_map(|(row, verdict)| match verdict {
            Verdict::Skipped(reason) if reason != NOT_ROOT && reason != TIME_OVER => {
                Some(format!("{}: {reason}", row.name()))
            }
            _ => None,
        })
        .collect();
    assert!(untried.is_empty(), "{} rows were not tried:\n{}", untried.len(), untried.join("\n"));
}

#[test]
fn the_covering_array_has_every_possible_pair() {
    let all = all();
    let rows = gate(&all);
    let attacks: std::collections::BTreeSet<_> = all.iter().map(Row::attack).collect();
    println!("{} rows of {}, {} attacks", rows.len(), all.len(), attacks.len());
    assert!(rows.len() <= MOST, "{} rows", rows.len());
    for goal in Goal::ALL {
        assert!(rows.iter().any(|row| row.goal == *goal), "{goal:?}");
    }
}

/// One test per goal.
macro_rules! goals {
    ($($(#[$doc:meta])* $name:ident: $($goal:ident)|+;)*) => {
        $($(#[$doc])* #[test] fn $name() { held(&[$(Goal::$goal),+]); })*

        #[test]
        fn every_goal_has_a_test() {
            let tested = [$($(Goal::$goal),+),*];
            for goal in Goal::ALL {
                assert!(tested.contains(goal), "{goal:?}");
            }
        }
    };
}

goals! {
    nobody_reads_the_home_folder: HomeKey | HomeNote;
    nobody_reads_the_operators_token: OperatorToken;
    nobody_reads_the_state: StateFile;
    nobody_changes_the_config: WriteConfig;
    nobody_changes_a_manifest_or_adds_one: WriteManifest | WriteNewManifest;
    nobody_changes_the_lock: WriteLock;
    nobody_changes_the_state_or_the_audit_log: WriteRecords;
    nobody_changes_what_a_manifest_runs: WriteScript | WriteProgram;
    nobody_changes_the_helper_or_the_program: WriteServer;
    nobody_changes_a_secret_or_what_makes_it: WriteSecret;
    nobody_changes_modes_and_times_of_the_control_plane: ChangeMetadata;
    nobody_makes_a_set_id_file_or_a_device: SetId;
    nobody_reaches_a_socket_outside:
        UnixDatagram | UnixStream | AbstractSocket | Loopback;
    nobody_runs_a_program_unconfined: RunUnconfined;
    nobody_has_a_file_run_that_was_missing_when_a_program_started: RunWhileEdited;
    nobody_approves_without_the_right: OwnApproval;
    nobody_reads_or_changes_the_home_of_another_program: OthersHome;
    nobody_reads_or_changes_the_kept_home_of_another_server: KeptHome;
    nobody_gets_what_is_anothers: OthersRun | OthersSpill | OthersKey;
    nobody_takes_more_than_their_share:
        DeepScratch | ManyThreads | SlowTheServer | EndTheServer | TakeMemory;
    no_link_leads_a_grant_out_of_the_workspace: CwdLink | GrantLink | InterpreterLine;
    no_cut_shows_a_secret: SecretAtCut | RedactedAtCut;
    nothing_is_accepted_that_was_not_shown: AcceptUnseen;
    no_look_runs_a_program: LookRunsProgram;
}

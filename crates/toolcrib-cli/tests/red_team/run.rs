//! Runs many rows on as few servers as possible, several at once.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::attack;
use crate::dimensions::{Goal, Right, Row, Surface, Tool, User};
use crate::folder::is_root;
use crate::possible::CODE;
use crate::world::{Kind, World, known};

/// The result of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing forbidden was observed.
    Held,
    /// The observed effects.
    Reached(Vec<String>),
    /// Why it could not be tried.
    Skipped(String),
}

/// Why rows with another user are skipped.
pub(crate) const NOT_ROOT: &str = "the tests do not run as root";
/// Why the last rows are skipped.
pub(crate) const TIME_OVER: &str = "the time for all rows was over";

/// Rows with the same kind of server, which are tried one after the other.
type Portion = (Kind, Vec<Row>);

/// The maximum number of rows per server.
const PORTION: usize = 40;

/// Tries the rows until the time is up; the rest is marked as skipped.
pub(crate) fn run(rows: &[Row], limit: Duration) -> Vec<(Row, Verdict)> {
    let end = Instant::now() + limit;
    let mut kinds: BTreeMap<Kind, Vec<Row>> = BTreeMap::new();
    for row in rows {
        kinds.entry(Kind::of(row)).or_default().push(*row);
    }
    let mut portions: Vec<Portion> = kinds
        .into_iter()
        .flat_map(|(kind, rows)| {
            rows.chunks(PORTION).map(|rows| (kind, rows.to_vec())).collect::<Vec<_>>()
        })
        .collect();
    // Interleaved, so that each kind of server gets its share if the time is not sufficient for
    // all.
    portions.sort_by_key(|(kind, rows)| (rows[0].tool as usize * 7 + kind.user as usize * 3) % 11);
    let portions: Mutex<VecDeque<Portion>> = Mutex::new(chosen_part(portions).into());
    let verdicts = Mutex::new(Vec::new());
    let begun = Instant::now();
    let loud = std::env::var_os("TOOLCRIB_RED_TEAM_TALK").is_some() || rows.len() > 2_000;
    let jobs = std::env::var("TOOLCRIB_RED_TEAM_JOBS").ok().and_then(|jobs| jobs.parse().ok());
    thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(4) {
            scope.spawn(|| {
                loop {
                    let next = portions.lock().unwrap().pop_front();
                    let Some((kind, rows)) = next else { break };
                    let tried = portion(kind, &rows, end);
                    if loud {
                        println!(
                            "{:>5} s: {} rows of {kind:?}",
                            begun.elapsed().as_secs(),
                            tried.len()
                        );
                    }
                    verdicts.lock().unwrap().extend(tried);
                }
            });
        }
    });
    verdicts.into_inner().unwrap()
}

/// The part that `TOOLCRIB_RED_TEAM_PART` selects, such as `2/3`: consecutive portions, so that all
/// parts together try each row once.
fn chosen_part(mut portions: Vec<Portion>) -> Vec<Portion> {
    let Ok(asked) = std::env::var("TOOLCRIB_RED_TEAM_PART") else { return portions };
    let (part, parts) = asked
        .split_once('/')
        .and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)))
        .filter(|(part, parts): &(usize, usize)| (1..=*parts).contains(part))
        .unwrap_or_else(|| panic!("`{asked}` is no part: write K/N, such as 2/3"));
    let (start, end) = (portions.len() * (part - 1) / parts, portions.len() * part / parts);
    portions.truncate(end);
    portions.split_off(start)
}

fn portion(kind: Kind, rows: &[Row], end: Instant) -> Vec<(Row, Verdict)> {
    let mut verdicts = Vec::new();
    let mut world: Option<World> = None;
    // If it works on one server, it works on the next one of its kind.
    let mut alive = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        let verdict = if Instant::now() > end {
            Verdict::Skipped(TIME_OVER.to_owned())
        } else if kind.user == User::Root && !is_root() {
            Verdict::Skipped(NOT_ROOT.to_owned())
        } else if let Err(reason) = known(row.right) {
            Verdict::Skipped(reason)
        } else {
            if world.as_mut().is_some_and(|world| !world.is_up()) {
                world = None;
            }
            if world.is_none() {
                // A copy of the binary is busy while another thread starts a process.
                let mut started = World::start(kind);
                for _ in 0..10 {
                    if !started.as_ref().is_err_and(|error| error.contains("Text file busy")) {
                        break;
                    }
                    sleep(Duration::from_millis(100));
                    started = World::start(kind);
                }
                match started {
                    Ok(mut started) => {
                        started.alive = std::mem::take(&mut alive);
                        world = Some(started);
                    }
                    Err(error) => {
                        let rest = rows[number..]
                            .iter()
                            .map(|row| (*row, Verdict::Skipped(error.clone())));
                        verdicts.extend(rest);
                        break;
                    }
                }
            }
            world.as_mut().map_or_else(
                || Verdict::Skipped("no server".to_owned()),
                |world| world.try_row(row),
            )
        };
        let spoilt = world.as_ref().is_some_and(|world| world.spoilt);
        if spoilt || row.goal == Goal::DeepScratch {
            // Changes are discarded with their server.
            alive = world.take().map(|world| world.alive).unwrap_or_default();
        }
        verdicts.push((*row, verdict));
    }
    verdicts
}

impl World {
    fn try_row(&mut self, row: &Row) -> Verdict {
        if let Err(reason) = self.works(row) {
            return Verdict::Skipped(reason);
        }
        let mark = format!("mark-{}", &unique());
        let heard = self.attack(row, &mark);
        if row.goal == Goal::DeepScratch {
            // The folders are removed after the answer.
            let end = Instant::now() + Duration::from_secs(4);
            while self.is_up() && Instant::now() < end {
                sleep(Duration::from_millis(50));
            }
        }
        let mut damage = self.oracle.damage(row, &self.folder, &self.listeners, &heard, &mark);
        if row.goal == Goal::OwnApproval
            && self.folder.workspace().join(format!("sent-{mark}")).exists()
        {
            damage.push("a call was approved by who may not approve".to_owned());
        }
        if std::env::var_os("TOOLCRIB_RED_TEAM_TALK").is_some() {
            println!(
                "== {}\n{}\n-- {damage:?}",
                row.name(),
                heard.chars().take(6_000).collect::<String>()
            );
        }
        self.spoilt = !damage.is_empty();
        if matches!(row.goal, Goal::RunUnconfined | Goal::RunWhileEdited) {
            // The planted file is a separate goal; here it must have been run.
            damage.retain(|seen| !seen.starts_with("changed"));
        }
        if damage.is_empty() {
            if !self.spoilt {
                self.oracle.restore(&self.folder);
            }
            Verdict::Held
        } else {
            Verdict::Reached(damage)
        }
    }

    /// Whether the row's tool works at all on this server, for a client that may use it.
    fn works(&mut self, row: &Row) -> Result<(), String> {
        if let Some(known) = self.alive.get(&row.tool) {
            return known.clone();
        }
        let right = if row.right == Right::NoAuth { Right::NoAuth } else { Right::Operator };
        let trial = Row { right, surface: Surface::Rest, goal: Goal::HomeKey, ..*row };
        let heard = match row.tool {
            Tool::GitStatus => self.shipped(row.tool),
            tool if CODE.contains(&tool) || tool == Tool::Temporary => {
                let facts =
                    attack::facts(Goal::EndTheServer, &self.folder, &self.listeners, 0, "alive");
                self.run_code(&trial, "hello", &facts)
            }
            Tool::Cwd => self.call(&trial, "red_docs", &json!({"path": "page.txt"})),
            Tool::Grant => self.call(&trial, "red_grant", &json!({"name": "alive"})),
            Tool::Secret => self.call(&trial, "red_secret", &json!({"before": 1, "after": 1})),
            Tool::GitLog
            | Tool::FileDetails
            | Tool::DirectorySize
            | Tool::TailLog
            | Tool::SearchLog
            | Tool::LargeFiles
            | Tool::ArchiveListing => self.shipped(row.tool),
            _ => "works".to_owned(),
        };
        let words = ["alive", "a page", "\"success\":true", "works"];
        let alive = if words.iter().any(|word| heard.contains(word))
            && !heard.contains("\"kind\":\"unavailable\"")
        {
            Ok(())
        } else {
            Err(format!("{} does not work here: {}", row.tool.name(), summary(&heard)))
        };
        self.oracle.restore(&self.folder);
        self.alive.insert(row.tool, alive.clone());
        alive
    }

    /// Whether a shipped tool is offered and can run.
    fn shipped(&self, tool: Tool) -> String {
        let answer = self.operator().send("GET", &format!("/v1/tools/{}", tool.name()), &[], "");
        match answer {
            Ok(answer) if answer.status == 200 => "works".to_owned(),
            Ok(answer) => answer.text(),
            Err(error) => error,
        }
    }
}

/// The message of a failed answer, or its beginning.
fn summary(heard: &str) -> String {
    let message = serde_json::from_str::<Value>(heard).ok().and_then(|answer| {
        let result = if answer["result"].is_object() { &answer["result"] } else { &answer };
        result["error"]["message"].as_str().map(str::to_owned)
    });
    message.unwrap_or_else(|| heard.to_owned()).chars().take(200).collect()
}

/// A word that occurs in no other row.
pub(crate) fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

//! A thousand edits under load: no call of a tool that was good throughout fails or is lost, and
//! nobody sees a definition that no file ever said.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::tool::{ErrorKind, Layer, Source};
use toolcrib::{ToolCall, ToolDefinition, ToolEntry, Toolcrib, tool_fn};

use crate::crib::{Followed, says};

/// Edits of a run; as many as somebody wants for a soak.
fn edits() -> usize {
    let asked = std::env::var("TOOLCRIB_STORM_EDITS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

/// What the process holds in memory, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
}

/// A small generator of its own: the same edits in every run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}

/// How long a file may be away before its tools may go: a removal waits for 100 ms.
const AWAY: Duration = Duration::from_millis(80);
/// How long after its return a tool may be missing: the next look, on a busy machine.
const BACK: Duration = Duration::from_secs(5);

/// Changes everything but `steady.yaml` and `other.yaml`, which only ever are saved with the same tools
/// and exchange their names. Says from when to when a file was away for longer than it may be: a busy
/// disk can hold up a rename.
fn edit(dir: &Path, dice: &mut RandomNumbers, number: usize) -> Option<(Instant, Instant)> {
    let path = |name: &str| dir.join(name);
    let save = |name: &str, text: &str| {
        fs::write(path("saving"), text).unwrap();
        fs::rename(path("saving"), path(name)).unwrap();
    };
    let words = format!("v{number}");
    let file = ["x.yaml", "y.yaml", "z.yaml"][dice.roll(3)];
    match dice.roll(9) {
        0 => save(file, &says("shifting", &words)),
        1 => fs::write(path(file), says("shifting", &words)).unwrap(),
        2 => save(file, "toolcrib: 1\ntools: [{name: shifting}]\n"),
        // Half of a valid file.
        3 => fs::write(path(file), &says("shifting", &words)[..40]).unwrap(),
        4 => drop(fs::remove_file(path(file))),
        5 => drop(fs::rename(path(file), path("w.yaml"))),
        6 => {
            // Two files exchange their names, and both are good throughout.
            let begin = Instant::now();
            fs::rename(path("steady.yaml"), path("aside")).unwrap();
            let exchanged = fs::rename(path("other.yaml"), path("steady.yaml")).is_ok();
            fs::rename(path("aside"), path("other.yaml")).unwrap();
            if exchanged {
                fs::rename(path("other.yaml"), path("aside")).unwrap();
                fs::rename(path("steady.yaml"), path("other.yaml")).unwrap();
                fs::rename(path("aside"), path("steady.yaml")).unwrap();
            } else {
                fs::rename(path("other.yaml"), path("steady.yaml")).unwrap();
            }
            let end = Instant::now();
            return (end - begin > AWAY).then_some((begin, end));
        }
        7 => {
            fs::write(dir.join("..next"), says("linked", &words)).unwrap();
            fs::rename(dir.join("..next"), dir.join("..target")).unwrap();
            let _ = std::os::unix::fs::symlink("..target", path("linked.yaml"));
        }
        _ => save("steady.yaml", &says("steady", "steady")),
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_lost_and_no_definition_is_wrong() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("tools.d");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("steady.yaml"), says("steady", "steady")).unwrap();
    fs::write(dir.join("other.yaml"), says("other", "other")).unwrap();
    let native = ToolDefinition::builder("native").description("Answer.").build().unwrap();
    let body = tool_fn(|_: serde_json::Value, _| async { "pong" });
    let found = Manifests::load(std::slice::from_ref(&dir), RunnerHost::new(outer.path()));
    let crib = Toolcrib::builder()
        .entry(ToolEntry::new(native, Arc::new(body), Source::new(Layer::Host, "test")))
        .manifests(&found)
        .build()
        .unwrap();
    crib.manifests().unwrap().watch().unwrap();
    let followed = Followed { outer, dir: dir.clone(), crib };

    let done = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicUsize::new(0));
    let mut callers = Vec::new();
    for (tool, answer) in
        [("native", "pong"), ("native", "pong"), ("steady", "steady"), ("other", "other")]
    {
        let (crib, done, calls) = (followed.crib.clone(), Arc::clone(&done), Arc::clone(&calls));
        callers.push(tokio::spawn(async move {
            let mut missed = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let result = crib.turn().call(ToolCall::new("1", tool, "{}")).await;
                if tool != "native" && result.error_kind() == Some(ErrorKind::NotFound) {
                    missed.push(Instant::now());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                assert_eq!(result.text().trim(), answer, "{tool} {:?}", result.error_kind());
                // Whoever sees the tool that changes sees a whole version of it.
                if let Some(tool) = crib.turn().describe("shifting") {
                    assert_eq!(tool.description(), "Say what it says.");
                }
                calls.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
            missed
        }));
    }
    let editor = tokio::task::spawn_blocking(move || {
        let mut dice = RandomNumbers(0x9e37_79b9_7f4a_7c15);
        let edits = edits();
        // Once everything that is allocated once has been.
        let mut early = 0;
        let mut away = Vec::new();
        for number in 0..edits {
            away.extend(edit(&dir, &mut dice, number));
            if number % 10 == 0 {
                std::thread::sleep(Duration::from_millis(dice.roll(20) as u64));
            }
            if number == edits / 4 {
                early = resident();
            }
        }
        (early, resident(), away)
    });
    let begin = Instant::now();
    let (early, late, away) = editor.await.unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        for missed in caller.await.unwrap() {
            let excused =
                |(begin, end): &(Instant, Instant)| (*begin..*end + BACK).contains(&missed);
            assert!(away.iter().any(excused), "a tool was not found; away: {away:?}");
        }
    }
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls > 1_000, "there was load");
    println!(
        "{} edits, {calls} calls ({:.0}/s), none lost; {early} KiB after a quarter, {late} KiB at the end",
        edits(),
        f64::from(u32::try_from(calls).unwrap_or(u32::MAX)) / seconds
    );
    assert!(late < early + 32 * 1024, "it grows: {early} KiB, then {late} KiB");

    // In the end the crib is what the files say.
    let fresh = Manifests::load(
        std::slice::from_ref(&followed.dir),
        RunnerHost::new(followed.outer.path()),
    );
    let said = Toolcrib::builder().manifests(&fresh).build().unwrap();
    let good: Vec<_> =
        said.turn().definitions().iter().map(|tool| tool.name().to_owned()).collect();
    tokio::task::block_in_place(|| {
        followed.until("it is what the files say", |followed| {
            good.iter().all(|name| followed.tool(name).is_some())
                && followed.crib.manifests().unwrap().files().iter().all(|file| file.path.exists())
        });
    });
}

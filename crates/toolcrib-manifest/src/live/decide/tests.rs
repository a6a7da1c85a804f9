//! Scans of real files: the changes that a registry receives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::directory::load_dirs;
use crate::live::manifests::{SETTLE, ScanScope};
use crate::live::{LiveManifests, ScanReport, Subscriber, UnitChange};

/// A registry for tests: the tools of each unit by file name, and a log of the changes.
#[derive(Default)]
struct RegistryState {
    tools: BTreeMap<String, BTreeSet<String>>,
    log: Vec<String>,
    refuse: Option<String>,
}

#[derive(Clone, Default)]
struct TestRegistry(Arc<Mutex<RegistryState>>);

impl Subscriber for TestRegistry {
    fn apply(&self, changes: Vec<UnitChange>) -> Result<(), String> {
        let mut units = self.0.lock().unwrap();
        if let Some(reason) = &units.refuse {
            return Err(reason.clone());
        }
        let short = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let before = units.tools.clone();
        let targets: BTreeSet<String> = changes
            .iter()
            .filter_map(|change| match change {
                UnitChange::Rename { to, .. } => Some(short(&to.name)),
                _ => None,
            })
            .collect();
        let mut entries: Vec<String> = Vec::new();
        for change in &changes {
            if let UnitChange::Rename { from, to } = change {
                let (from, to) = (short(&from.name), short(&to.name));
                entries.push(format!("{from} -> {to}"));
                let tools = before.get(&from).cloned().unwrap_or_default();
                units.tools.insert(to, tools);
                if !targets.contains(&from) {
                    units.tools.remove(&from);
                }
            }
        }
        for change in &changes {
            match change {
                UnitChange::Rename { .. } => {}
                UnitChange::Remove { unit } => {
                    entries.push(format!("- {}", short(&unit.name)));
                    units.tools.remove(&short(&unit.name));
                }
                UnitChange::Replace { unit, loaded } => {
                    let names = loaded.declarations.iter();
                    let names = names.map(|tool| tool.definition.name().to_owned()).collect();
                    if !targets.contains(&short(&unit.name)) {
                        entries.push(format!("= {}", short(&unit.name)));
                    }
                    units.tools.insert(short(&unit.name), names);
                }
            }
        }
        entries.sort();
        units.log.push(entries.join(", "));
        Ok(())
    }

    fn report(&self, _: &ScanReport) {}
}

struct Fixture {
    dir: TempDir,
    registry: TestRegistry,
    live: LiveManifests,
}

fn text(tool: &str) -> String {
    format!(
        "toolcrib: 1\ntools:\n  - name: {tool}\n    description: Does it.\n    run: {{argv: [uptime]}}\n"
    )
}

impl Fixture {
    fn with(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let load = load_dirs(&[dir.path().to_owned()]);
        assert!(!load.has_errors(), "{:?}", load.problems().next());
        let registry = TestRegistry::default();
        for file in load.files.iter().filter(|file| !file.loaded.has_errors()) {
            let name = file.path.file_name().unwrap().to_string_lossy().into_owned();
            let tools = file.loaded.declarations.iter();
            let tools = tools.map(|tool| tool.definition.name().to_owned()).collect();
            registry.0.lock().unwrap().tools.insert(name, tools);
        }
        let live = LiveManifests::new(&load, registry.clone());
        Self { dir, registry, live }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn save(&self, name: &str, content: &str) {
        fs::write(self.path("saving.tmp"), content).unwrap();
        fs::rename(self.path("saving.tmp"), self.path(name)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// The changes that one scan sends to the registry.
    fn scan(&self) -> String {
        let before = self.registry.0.lock().unwrap().log.len();
        self.live.scan(&ScanScope::All);
        self.registry.0.lock().unwrap().log[before..].join("; ")
    }

    fn settled(&self) -> String {
        sleep(SETTLE + Duration::from_millis(5));
        self.scan()
    }

    fn tools(&self) -> Vec<String> {
        let units = self.registry.0.lock().unwrap();
        units.tools.values().flatten().cloned().collect()
    }

    fn states(&self) -> Vec<String> {
        let files = self.live.files();
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        files
            .iter()
            .map(|file| format!("{} {} {}", name(&file.path), file.state.as_str(), file.tools))
            .collect()
    }
}

#[test]
fn unchanged_files_cause_no_changes() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    assert_eq!(fixture.scan(), "");
    // Saved again with the same text, in place and by renaming.
    fs::write(fixture.path("a.yaml"), text("a")).unwrap();
    assert_eq!(fixture.scan(), "");
    fixture.save("a.yaml", &text("a"));
    assert_eq!(fixture.scan(), "");
    fixture.save("a.yaml", &text("b"));
    assert_eq!(fixture.scan(), "= a.yaml");
}

#[test]
fn a_reload_reports_every_file() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fs::write(fixture.path("b.yaml"), "{").unwrap();
    fixture.live.reload();
    assert_eq!(fixture.registry.0.lock().unwrap().log, ["= a.yaml"]);
}

#[test]
fn a_broken_file_keeps_its_last_good_tools_and_others_go_on() {
    let fixture = Fixture::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    fixture.save("a.yaml", "toolcrib: 1\ntools: [{name: a}]\n");
    fixture.save("b.yaml", &text("b2"));
    fixture.save("c.yaml", "{");
    assert_eq!(fixture.scan(), "= b.yaml");
    assert_eq!(fixture.tools(), ["a", "b2"]);
    assert_eq!(fixture.states(), ["a.yaml stale 1", "b.yaml live 1", "c.yaml broken 0"]);
    let reason = fixture.live.files()[0].state.reason().unwrap().to_owned();
    assert!(reason.starts_with("line 2, column 9: a tool needs the key"), "{reason}");
    // Back to the live content: reported anyway, because only the registry can tell that nothing is
    // new.
    fixture.save("a.yaml", &text("a"));
    assert_eq!(fixture.scan(), "= a.yaml");
    assert_eq!(fixture.states()[0], "a.yaml live 1");
}

#[test]
fn an_empty_or_unreadable_file_is_stale_and_no_tools_at_all_are_a_choice() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fixture.save("a.yaml", " \n");
    assert_eq!(fixture.scan(), "");
    assert_eq!(fixture.states(), ["a.yaml stale 1"]);
    fs::remove_file(fixture.path("a.yaml")).unwrap();
    fs::create_dir(fixture.path("a.yaml")).unwrap();
    assert_eq!((fixture.scan(), fixture.settled()), (String::new(), "- a.yaml".to_owned()));
    assert!(fixture.states().is_empty());
    fs::remove_dir(fixture.path("a.yaml")).unwrap();

    fixture.save("a.yaml", &text("a"));
    assert_eq!(fixture.scan(), "= a.yaml");
    fixture.save("a.yaml", "toolcrib: 1\ntools: []\n");
    assert_eq!(fixture.scan(), "= a.yaml");
    assert!(fixture.tools().is_empty());
}

#[test]
fn a_file_that_is_gone_is_waited_for_before_its_tools_go() {
    let fixture = Fixture::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    fs::remove_file(fixture.path("a.yaml")).unwrap();
    assert_eq!(fixture.scan(), "");
    // As an editor that keeps a backup does: the file was missing for a moment only.
    fs::write(fixture.path("a.yaml"), text("a")).unwrap();
    assert_eq!(fixture.settled(), "");
    fs::remove_file(fixture.path("a.yaml")).unwrap();
    assert_eq!((fixture.scan(), fixture.settled()), (String::new(), "- a.yaml".to_owned()));
    assert_eq!(fixture.states(), ["b.yaml live 1"]);
}

#[test]
fn a_renamed_file_is_the_same_unit_at_once() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fixture.rename("a.yaml", "z.yaml");
    assert_eq!(fixture.scan(), "a.yaml -> z.yaml");
    assert_eq!(fixture.states(), ["z.yaml live 1"]);
    assert_eq!(fixture.settled(), "");
}

#[test]
fn a_copy_that_takes_the_place_of_the_original_is_the_same_unit() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fs::remove_file(fixture.path("a.yaml")).unwrap();
    fs::write(fixture.path("b.yaml"), text("a")).unwrap();
    assert_eq!(fixture.scan(), "a.yaml -> b.yaml");
}

#[test]
fn files_that_exchange_names_step_by_step_lose_nothing() {
    let fixture = Fixture::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    fixture.rename("a.yaml", "aside");
    assert_eq!(fixture.scan(), "");
    fixture.rename("b.yaml", "a.yaml");
    assert_eq!(fixture.scan(), "", "the old a may come back as b");
    fixture.rename("aside", "b.yaml");
    assert_eq!(fixture.scan(), "a.yaml -> b.yaml, b.yaml -> a.yaml");
    assert_eq!(fixture.tools(), ["b", "a"]);
    assert_eq!(fixture.settled(), "");
}

#[test]
fn three_files_that_change_places_are_one_set() {
    let fixture =
        Fixture::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b")), ("c.yaml", &text("c"))]);
    fixture.rename("a.yaml", "aside");
    fixture.rename("b.yaml", "a.yaml");
    fixture.rename("c.yaml", "b.yaml");
    assert_eq!(fixture.scan(), "");
    fixture.rename("aside", "c.yaml");
    assert_eq!(fixture.scan(), "a.yaml -> c.yaml, b.yaml -> a.yaml, c.yaml -> b.yaml");
}

#[test]
fn a_manifest_moved_over_another_takes_its_place_after_a_second_look() {
    let fixture = Fixture::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    fixture.rename("b.yaml", "a.yaml");
    assert_eq!(fixture.scan(), "");
    assert_eq!(fixture.tools(), ["a", "b"], "nothing is taken away yet");
    assert_eq!(fixture.settled(), "b.yaml -> a.yaml");
    assert_eq!(fixture.tools(), ["b"]);
}

#[test]
fn a_directory_that_vanishes_is_stale_and_comes_back() {
    let outer = TempDir::new().unwrap();
    let dir = outer.path().join("tools.d");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), text("a")).unwrap();
    let registry = TestRegistry::default();
    let live = LiveManifests::new(&load_dirs(std::slice::from_ref(&dir)), registry.clone());
    let told = || {
        live.scan(&ScanScope::All);
        sleep(SETTLE + Duration::from_millis(5));
        live.scan(&ScanScope::All);
        std::mem::take(&mut registry.0.lock().unwrap().log).join("; ")
    };

    fs::rename(&dir, outer.path().join("away")).unwrap();
    assert_eq!(told(), "");
    assert_eq!(live.files()[0].state.as_str(), "stale");
    assert_eq!(live.unreadable().len(), 1);
    // As after an unmount: another, empty directory.
    fs::create_dir(&dir).unwrap();
    assert_eq!(told(), "");
    fs::remove_dir(&dir).unwrap();
    fs::rename(outer.path().join("away"), &dir).unwrap();
    assert_eq!(told(), "= a.yaml");
    assert_eq!(live.files()[0].state.as_str(), "live");
    assert!(live.unreadable().is_empty());
    // The same directory, emptied by hand: its tools are removed.
    fs::remove_file(dir.join("a.yaml")).unwrap();
    assert_eq!(told(), "- a.yaml");
}

#[test]
fn a_refused_change_leaves_everything_and_is_offered_again() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fixture.registry.0.lock().unwrap().refuse = Some("names are declared twice".to_owned());
    fixture.save("a.yaml", &text("b"));
    fixture.save("new.yaml", &text("c"));
    assert_eq!(fixture.scan(), "");
    assert_eq!(fixture.tools(), ["a"]);
    assert_eq!(fixture.states(), ["a.yaml stale 1", "new.yaml broken 0"]);
    fixture.registry.0.lock().unwrap().refuse = None;
    assert_eq!(fixture.scan(), "= a.yaml, = new.yaml");
    assert_eq!(fixture.states(), ["a.yaml live 1", "new.yaml live 1"]);
}

#[test]
fn a_refused_change_that_is_taken_back_is_forgotten() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fixture.registry.0.lock().unwrap().refuse = Some("no".to_owned());
    fixture.save("a.yaml", &text("b"));
    fixture.scan();
    fixture.save("a.yaml", &text("a"));
    fixture.scan();
    assert_eq!(fixture.states(), ["a.yaml live 1"]);
}

#[cfg(unix)]
#[test]
fn a_second_name_of_a_file_is_not_a_rename() {
    let fixture = Fixture::with(&[("a.yaml", &text("a"))]);
    fs::hard_link(fixture.path("a.yaml"), fixture.path("b.yaml")).unwrap();
    assert_eq!(fixture.scan(), "= b.yaml");
    fs::remove_file(fixture.path("a.yaml")).unwrap();
    assert_eq!((fixture.scan(), fixture.settled()), (String::new(), "- a.yaml".to_owned()));
}

#[cfg(unix)]
#[test]
fn a_swap_of_the_directory_behind_links_is_one_set() {
    use std::os::unix::fs::symlink;

    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (version, tool) in [("..v1", "a"), ("..v2", "b")] {
        fs::create_dir(path(version)).unwrap();
        fs::write(path(version).join("x.yaml"), text(tool)).unwrap();
        fs::write(path(version).join("y.yaml"), text(&format!("{tool}_y"))).unwrap();
    }
    symlink("..v1", path("..data")).unwrap();
    symlink("..data/x.yaml", path("x.yaml")).unwrap();
    symlink("..data/y.yaml", path("y.yaml")).unwrap();
    let registry = TestRegistry::default();
    let live = LiveManifests::new(&load_dirs(&[dir.path().to_owned()]), registry.clone());
    symlink("..v2", path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    live.scan(&ScanScope::All);
    assert_eq!(registry.0.lock().unwrap().log, ["= x.yaml, = y.yaml"]);
}

/// An operation on a directory with three file names.
#[derive(Debug, Clone)]
enum Operation {
    Save(usize, usize),
    Break(usize),
    Delete(usize),
    Move(usize, usize),
    Aside(usize),
    Return(usize),
    Scan,
    Wait,
}

const NAMES: [&str; 3] = ["a.yaml", "b.yaml", "c.yaml"];

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let file = 0..NAMES.len();
    let operation = prop_oneof![
        3 => (file.clone(), 0..4usize).prop_map(|(file, tool)| Operation::Save(file, tool)),
        1 => file.clone().prop_map(Operation::Break),
        2 => file.clone().prop_map(Operation::Delete),
        3 => (file.clone(), file.clone()).prop_map(|(from, to)| Operation::Move(from, to)),
        1 => file.clone().prop_map(Operation::Aside),
        1 => file.prop_map(Operation::Return),
        6 => Just(Operation::Scan),
        1 => Just(Operation::Wait),
    ];
    prop::collection::vec(operation, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    /// However many scans there are in between, the final tools are those of the files; broken
    /// files keep the tools of their last valid version.
    #[test]
    fn any_operations_end_with_the_tools_of_the_files(operations in operations()) {
        let fixture = Fixture::with(&[("a.yaml", &text("t0")), ("b.yaml", &text("t1"))]);
        for operation in operations {
            match operation {
                Operation::Save(file, tool) => fixture.save(NAMES[file], &text(&format!("t{tool}"))),
                Operation::Break(file) => fixture.save(NAMES[file], "toolcrib: 1\n"),
                Operation::Delete(file) => drop(fs::remove_file(fixture.path(NAMES[file]))),
                Operation::Move(from, to) => {
                    drop(fs::rename(fixture.path(NAMES[from]), fixture.path(NAMES[to])));
                }
                Operation::Aside(file) => {
                    drop(fs::rename(fixture.path(NAMES[file]), fixture.path("aside")));
                }
                Operation::Return(file) => {
                    drop(fs::rename(fixture.path("aside"), fixture.path(NAMES[file])));
                }
                Operation::Scan => drop(fixture.scan()),
                Operation::Wait => drop(fixture.settled()),
            }
        }
        fixture.scan();
        fixture.settled();
        fixture.settled();
        let fresh = load_dirs(&[fixture.dir.path().to_owned()]);
        for file in &fresh.files {
            let name = file.path.file_name().unwrap().to_string_lossy().into_owned();
            let units = fixture.registry.0.lock().unwrap();
            let live = units.tools.get(&name);
            if !file.loaded.has_errors() {
                let says = file.loaded.declarations.iter();
                let says: BTreeSet<_> = says.map(|t| t.definition.name().to_owned()).collect();
                prop_assert_eq!(live, Some(&says), "{} {:?}", name, units.log);
            }
        }
        let there: BTreeSet<_> = fresh
            .files
            .iter()
            .map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        let units = fixture.registry.0.lock().unwrap();
        for unit in units.tools.keys() {
            prop_assert!(there.contains(unit), "{unit} is gone: {:?}", units.log);
        }
    }
}

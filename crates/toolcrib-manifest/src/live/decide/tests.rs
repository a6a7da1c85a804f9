//! Real files, looked at by hand: what a registry would be told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::directory::load_dirs;
use crate::live::manifests::{SETTLE, Scope};
use crate::live::{LiveManifests, LookReport, Subscriber, UnitChange};

/// What a registry would have of each unit: the names it declares, and which of its tools were there
/// from the beginning under whatever file name.
#[derive(Default)]
struct Units {
    tools: BTreeMap<String, BTreeSet<String>>,
    log: Vec<String>,
    refuse: Option<String>,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Units>>);

impl Subscriber for Kept {
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
        let mut said: Vec<String> = Vec::new();
        for change in &changes {
            if let UnitChange::Rename { from, to } = change {
                let (from, to) = (short(&from.name), short(&to.name));
                said.push(format!("{from} -> {to}"));
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
                    said.push(format!("- {}", short(&unit.name)));
                    units.tools.remove(&short(&unit.name));
                }
                UnitChange::Replace { unit, loaded } => {
                    let names = loaded.declarations.iter();
                    let names = names.map(|tool| tool.definition.name().to_owned()).collect();
                    if !targets.contains(&short(&unit.name)) {
                        said.push(format!("= {}", short(&unit.name)));
                    }
                    units.tools.insert(short(&unit.name), names);
                }
            }
        }
        said.sort();
        units.log.push(said.join(", "));
        Ok(())
    }

    fn report(&self, _: &LookReport) {}
}

struct Watched {
    dir: TempDir,
    kept: Kept,
    live: LiveManifests,
}

fn text(tool: &str) -> String {
    format!(
        "toolcrib: 1\ntools:\n  - name: {tool}\n    description: Does it.\n    run: {{argv: [uptime]}}\n"
    )
}

impl Watched {
    fn with(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let load = load_dirs(&[dir.path().to_owned()]);
        assert!(!load.has_errors(), "{:?}", load.problems().next());
        let kept = Kept::default();
        for file in load.files.iter().filter(|file| !file.loaded.has_errors()) {
            let name = file.path.file_name().unwrap().to_string_lossy().into_owned();
            let tools = file.loaded.declarations.iter();
            let tools = tools.map(|tool| tool.definition.name().to_owned()).collect();
            kept.0.lock().unwrap().tools.insert(name, tools);
        }
        let live = LiveManifests::new(&load, kept.clone());
        Self { dir, kept, live }
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

    /// What the registry was told by one look.
    fn look(&self) -> String {
        let before = self.kept.0.lock().unwrap().log.len();
        self.live.look(&Scope::All);
        self.kept.0.lock().unwrap().log[before..].join("; ")
    }

    fn settled(&self) -> String {
        sleep(SETTLE + Duration::from_millis(5));
        self.look()
    }

    fn tools(&self) -> Vec<String> {
        let units = self.kept.0.lock().unwrap();
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
fn what_did_not_change_is_not_told() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    assert_eq!(watched.look(), "");
    // Saved again with the same text, in place and by renaming.
    fs::write(watched.path("a.yaml"), text("a")).unwrap();
    assert_eq!(watched.look(), "");
    watched.save("a.yaml", &text("a"));
    assert_eq!(watched.look(), "");
    watched.save("a.yaml", &text("b"));
    assert_eq!(watched.look(), "= a.yaml");
}

#[test]
fn a_reload_tells_of_everything_since_what_a_file_needs_may_have_changed() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    fs::write(watched.path("b.yaml"), "{").unwrap();
    watched.live.reload();
    assert_eq!(watched.kept.0.lock().unwrap().log, ["= a.yaml"]);
}

#[test]
fn a_broken_file_keeps_its_last_good_tools_and_others_go_on() {
    let watched = Watched::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    watched.save("a.yaml", "toolcrib: 1\ntools: [{name: a}]\n");
    watched.save("b.yaml", &text("b2"));
    watched.save("c.yaml", "{");
    assert_eq!(watched.look(), "= b.yaml");
    assert_eq!(watched.tools(), ["a", "b2"]);
    assert_eq!(watched.states(), ["a.yaml stale 1", "b.yaml live 1", "c.yaml broken 0"]);
    let reason = watched.live.files()[0].state.reason().unwrap().to_owned();
    assert!(reason.starts_with("line 2, column 9: a tool needs the key"), "{reason}");
    // Back to what is live already: told, since only the registry knows that nothing is new.
    watched.save("a.yaml", &text("a"));
    assert_eq!(watched.look(), "= a.yaml");
    assert_eq!(watched.states()[0], "a.yaml live 1");
}

#[test]
fn an_empty_or_unreadable_file_is_stale_and_no_tools_at_all_are_a_choice() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    watched.save("a.yaml", " \n");
    assert_eq!(watched.look(), "");
    assert_eq!(watched.states(), ["a.yaml stale 1"]);
    fs::remove_file(watched.path("a.yaml")).unwrap();
    fs::create_dir(watched.path("a.yaml")).unwrap();
    assert_eq!((watched.look(), watched.settled()), (String::new(), "- a.yaml".to_owned()));
    assert!(watched.states().is_empty());
    fs::remove_dir(watched.path("a.yaml")).unwrap();

    watched.save("a.yaml", &text("a"));
    assert_eq!(watched.look(), "= a.yaml");
    watched.save("a.yaml", "toolcrib: 1\ntools: []\n");
    assert_eq!(watched.look(), "= a.yaml");
    assert!(watched.tools().is_empty());
}

#[test]
fn a_file_that_is_gone_is_waited_for_before_its_tools_go() {
    let watched = Watched::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    fs::remove_file(watched.path("a.yaml")).unwrap();
    assert_eq!(watched.look(), "");
    // As an editor does that keeps a backup: it was only away for a moment.
    fs::write(watched.path("a.yaml"), text("a")).unwrap();
    assert_eq!(watched.settled(), "");
    fs::remove_file(watched.path("a.yaml")).unwrap();
    assert_eq!((watched.look(), watched.settled()), (String::new(), "- a.yaml".to_owned()));
    assert_eq!(watched.states(), ["b.yaml live 1"]);
}

#[test]
fn a_renamed_file_is_the_same_unit_at_once() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    watched.rename("a.yaml", "z.yaml");
    assert_eq!(watched.look(), "a.yaml -> z.yaml");
    assert_eq!(watched.states(), ["z.yaml live 1"]);
    assert_eq!(watched.settled(), "");
}

#[test]
fn a_copy_that_takes_the_place_of_the_original_is_the_same_unit() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    fs::remove_file(watched.path("a.yaml")).unwrap();
    fs::write(watched.path("b.yaml"), text("a")).unwrap();
    assert_eq!(watched.look(), "a.yaml -> b.yaml");
}

#[test]
fn files_that_exchange_names_step_by_step_lose_nothing() {
    let watched = Watched::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    watched.rename("a.yaml", "aside");
    assert_eq!(watched.look(), "");
    watched.rename("b.yaml", "a.yaml");
    assert_eq!(watched.look(), "", "the old a may come back as b");
    watched.rename("aside", "b.yaml");
    assert_eq!(watched.look(), "a.yaml -> b.yaml, b.yaml -> a.yaml");
    assert_eq!(watched.tools(), ["b", "a"]);
    assert_eq!(watched.settled(), "");
}

#[test]
fn three_files_that_change_places_are_one_set() {
    let watched =
        Watched::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b")), ("c.yaml", &text("c"))]);
    watched.rename("a.yaml", "aside");
    watched.rename("b.yaml", "a.yaml");
    watched.rename("c.yaml", "b.yaml");
    assert_eq!(watched.look(), "");
    watched.rename("aside", "c.yaml");
    assert_eq!(watched.look(), "a.yaml -> c.yaml, b.yaml -> a.yaml, c.yaml -> b.yaml");
}

#[test]
fn a_manifest_moved_over_another_takes_its_place_after_a_second_look() {
    let watched = Watched::with(&[("a.yaml", &text("a")), ("b.yaml", &text("b"))]);
    watched.rename("b.yaml", "a.yaml");
    assert_eq!(watched.look(), "");
    assert_eq!(watched.tools(), ["a", "b"], "nothing is taken away yet");
    assert_eq!(watched.settled(), "b.yaml -> a.yaml");
    assert_eq!(watched.tools(), ["b"]);
}

#[test]
fn a_directory_that_vanishes_is_stale_and_comes_back() {
    let outer = TempDir::new().unwrap();
    let dir = outer.path().join("tools.d");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a.yaml"), text("a")).unwrap();
    let kept = Kept::default();
    let live = LiveManifests::new(&load_dirs(std::slice::from_ref(&dir)), kept.clone());
    let told = || {
        live.look(&Scope::All);
        sleep(SETTLE + Duration::from_millis(5));
        live.look(&Scope::All);
        std::mem::take(&mut kept.0.lock().unwrap().log).join("; ")
    };

    fs::rename(&dir, outer.path().join("away")).unwrap();
    assert_eq!(told(), "");
    assert_eq!(live.files()[0].state.as_str(), "stale");
    assert_eq!(live.unreadable().len(), 1);
    // What is seen while a mount is away: an empty directory that is another one.
    fs::create_dir(&dir).unwrap();
    assert_eq!(told(), "");
    fs::remove_dir(&dir).unwrap();
    fs::rename(outer.path().join("away"), &dir).unwrap();
    assert_eq!(told(), "= a.yaml");
    assert_eq!(live.files()[0].state.as_str(), "live");
    assert!(live.unreadable().is_empty());
    // Emptied by hand, it is the same directory: that is meant.
    fs::remove_file(dir.join("a.yaml")).unwrap();
    assert_eq!(told(), "- a.yaml");
}

#[test]
fn what_is_refused_leaves_everything_and_is_offered_again() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    watched.kept.0.lock().unwrap().refuse = Some("names are declared twice".to_owned());
    watched.save("a.yaml", &text("b"));
    watched.save("new.yaml", &text("c"));
    assert_eq!(watched.look(), "");
    assert_eq!(watched.tools(), ["a"]);
    assert_eq!(watched.states(), ["a.yaml stale 1", "new.yaml broken 0"]);
    watched.kept.0.lock().unwrap().refuse = None;
    assert_eq!(watched.look(), "= a.yaml, = new.yaml");
    assert_eq!(watched.states(), ["a.yaml live 1", "new.yaml live 1"]);
}

#[test]
fn a_refused_change_that_is_taken_back_is_forgotten() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    watched.kept.0.lock().unwrap().refuse = Some("no".to_owned());
    watched.save("a.yaml", &text("b"));
    watched.look();
    watched.save("a.yaml", &text("a"));
    watched.look();
    assert_eq!(watched.states(), ["a.yaml live 1"]);
}

#[cfg(unix)]
#[test]
fn a_second_name_of_a_file_is_no_rename() {
    let watched = Watched::with(&[("a.yaml", &text("a"))]);
    fs::hard_link(watched.path("a.yaml"), watched.path("b.yaml")).unwrap();
    assert_eq!(watched.look(), "= b.yaml");
    fs::remove_file(watched.path("a.yaml")).unwrap();
    assert_eq!((watched.look(), watched.settled()), (String::new(), "- a.yaml".to_owned()));
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
    let kept = Kept::default();
    let live = LiveManifests::new(&load_dirs(&[dir.path().to_owned()]), kept.clone());
    symlink("..v2", path("..data_tmp")).unwrap();
    fs::rename(path("..data_tmp"), path("..data")).unwrap();
    live.look(&Scope::All);
    assert_eq!(kept.0.lock().unwrap().log, ["= x.yaml, = y.yaml"]);
}

/// What somebody may do to a directory of three names.
#[derive(Debug, Clone)]
enum Deed {
    Save(usize, usize),
    Break(usize),
    Delete(usize),
    Move(usize, usize),
    Aside(usize),
    Return(usize),
    Look,
    Wait,
}

const NAMES: [&str; 3] = ["a.yaml", "b.yaml", "c.yaml"];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let file = 0..NAMES.len();
    let deed = prop_oneof![
        3 => (file.clone(), 0..4usize).prop_map(|(file, tool)| Deed::Save(file, tool)),
        1 => file.clone().prop_map(Deed::Break),
        2 => file.clone().prop_map(Deed::Delete),
        3 => (file.clone(), file.clone()).prop_map(|(from, to)| Deed::Move(from, to)),
        1 => file.clone().prop_map(Deed::Aside),
        1 => file.prop_map(Deed::Return),
        6 => Just(Deed::Look),
        1 => Just(Deed::Wait),
    ];
    prop::collection::vec(deed, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    /// However often somebody has looked in between, the end is what the files say, with the last
    /// good tools of those that are broken.
    #[test]
    fn any_deeds_end_in_what_the_files_say(deeds in deeds()) {
        let watched = Watched::with(&[("a.yaml", &text("t0")), ("b.yaml", &text("t1"))]);
        for deed in deeds {
            match deed {
                Deed::Save(file, tool) => watched.save(NAMES[file], &text(&format!("t{tool}"))),
                Deed::Break(file) => watched.save(NAMES[file], "toolcrib: 1\n"),
                Deed::Delete(file) => drop(fs::remove_file(watched.path(NAMES[file]))),
                Deed::Move(from, to) => {
                    drop(fs::rename(watched.path(NAMES[from]), watched.path(NAMES[to])));
                }
                Deed::Aside(file) => {
                    drop(fs::rename(watched.path(NAMES[file]), watched.path("aside")));
                }
                Deed::Return(file) => {
                    drop(fs::rename(watched.path("aside"), watched.path(NAMES[file])));
                }
                Deed::Look => drop(watched.look()),
                Deed::Wait => drop(watched.settled()),
            }
        }
        watched.look();
        watched.settled();
        watched.settled();
        let fresh = load_dirs(&[watched.dir.path().to_owned()]);
        for file in &fresh.files {
            let name = file.path.file_name().unwrap().to_string_lossy().into_owned();
            let units = watched.kept.0.lock().unwrap();
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
        let units = watched.kept.0.lock().unwrap();
        for unit in units.tools.keys() {
            prop_assert!(there.contains(unit), "{unit} is gone: {:?}", units.log);
        }
    }
}

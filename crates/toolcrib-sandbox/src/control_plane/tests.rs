//! Places that belong to the control plane, through links and under several names.

use std::os::unix::fs::symlink;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    (dir, path)
}

/// The first of these files that is exposed.
fn exposed<P: AsRef<Path>>(
    plane: &ControlPlane,
    files: impl IntoIterator<Item = P>,
) -> Option<PathBuf> {
    plane.exposed(files).map(|file| file.path)
}

#[test]
fn a_place_is_listed_as_written_and_without_links_with_each_link_on_the_way() {
    let (_dir, top) = folder();
    std::fs::create_dir(top.join("real")).unwrap();
    symlink("real", top.join("middle")).unwrap();
    symlink(top.join("middle"), top.join("first")).unwrap();
    let places = Places::resolve([top.join("first/config.yml")], [top.join("real/../x.sh")]);
    assert_eq!(places.hidden, [top.join("first/config.yml"), top.join("real/config.yml")]);
    assert_eq!(places.read_only, [top.join("x.sh")]);
    assert_eq!(places.links, [top.join("first"), top.join("middle")]);
}

#[test]
fn a_loop_of_links_ends_and_the_place_stays_listed() {
    let (_dir, top) = folder();
    symlink("b", top.join("a")).unwrap();
    symlink("a", top.join("b")).unwrap();
    let places = Places::resolve([top.join("a")], [""; 0]);
    assert_eq!((places.hidden, places.links.len()), (vec![top.join("a")], 2));
}

#[test]
fn only_new_places_within_the_grants_have_a_program_started_again() {
    let before = Places::resolve([""; 0], ["/srv/w/a.sh"]);
    let now = Places::resolve(["/srv/state"], ["/srv/w/a.sh", "/srv/elsewhere/b.sh"]);
    let program = Confinement::new(Profile::Workspace).workspace("/srv/w");
    assert!(!now.adds_for(&before, &program));
    assert!(now.adds_for(&before, &program.clone().read("/srv")));
    assert!(now.adds_for(&before, &program.write("/srv/elsewhere")));
    assert!(!now.adds_for(&before, &Confinement::new(Profile::Trusted).workspace("/srv")));
    assert!(!now.adds_for(&before, &Confinement::new(Profile::Pure).workspace("/srv")));
}

#[test]
fn a_missing_script_that_a_program_could_create_is_exposed_until_it_is_reviewed() {
    let (_dir, top) = folder();
    std::fs::write(top.join("there.sh"), "").unwrap();
    let [there, missing] = ["there.sh", "missing.sh"].map(|name| top.join(name));
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&there, &missing]));
    let pure = Confinement::new(Profile::Pure).workspace(&top).control_plane(&plane);
    pure.expose().unwrap();
    assert_eq!((pure.read_only, exposed(&plane, [&missing])), (Vec::new(), None));

    let program = Confinement::new(Profile::Workspace).workspace(&top);
    let confined = program.clone().control_plane(&plane);
    assert_eq!(confined.read_only, std::slice::from_ref(&there));
    confined.expose().unwrap();
    std::fs::write(&missing, "evil").unwrap();
    assert_eq!(exposed(&plane, [&there, &missing]), Some(missing.clone()));
    assert!(program.control_plane(&plane).read_only.contains(&missing));
    plane.reviewed();
    assert_eq!(exposed(&plane, [&missing]), None);
}

#[test]
fn what_is_missing_in_a_folder_that_is_withheld_is_not_exposed() {
    let (_dir, top) = folder();
    let manifests = top.join("tools.d");
    std::fs::create_dir(&manifests).unwrap();
    let missing = manifests.join("x.yaml");
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&manifests, &missing]));
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    program.expose().unwrap();
    assert_eq!(exposed(&plane, [&missing]), None);
}

#[test]
fn a_workspace_that_does_not_exist_yet_is_judged_by_where_it_will_be() {
    let (_dir, top) = folder();
    std::fs::create_dir(top.join("real")).unwrap();
    symlink("real", top.join("alias")).unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [top.join("real")]));
    let taken = || {
        let workspace = top.join("alias/workspace");
        Confinement::new(Profile::Workspace).workspace(workspace).control_plane(&plane)
    };
    let before = taken();
    assert_eq!(before.read_only, [top.join("real")]);
    let reason = before.check().unwrap_err();
    std::fs::create_dir(top.join("real/workspace")).unwrap();
    assert_eq!(taken(), before);
    assert_eq!(taken().check().unwrap_err(), reason);
}

#[test]
fn a_place_that_goes_while_a_program_starts_is_left_out_and_what_was_asked_for_stays() {
    let (_dir, top) = folder();
    let [script, other] = ["run.sh", "other.sh"].map(|name| top.join(name));
    std::fs::write(&script, "true").unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&script]));
    let mut program = Confinement::new(Profile::Workspace).workspace(&top).read_only(&other);
    program = program.control_plane(&plane);
    program.leave_out_missing();
    assert_eq!(program.read_only, [other.clone(), script.clone()]);
    std::fs::remove_file(&script).unwrap();
    program.leave_out_missing();
    assert_eq!(program.read_only, [other]);
    program.expose().unwrap();
    // It is back before the program runs, which could change it.
    std::fs::write(&script, "true").unwrap();
    assert_eq!(exposed(&plane, [&script]), Some(script));
}

#[test]
fn a_link_in_the_place_of_a_protected_file_keeps_programs_that_could_replace_it_from_starting() {
    let (_dir, top) = folder();
    let [config, target] = ["config.yml", "saved.yml"].map(|name| top.join("srv").join(name));
    for folder in ["srv", "elsewhere"] {
        std::fs::create_dir(top.join(folder)).unwrap();
    }
    std::fs::write(&config, "").unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([&config], [""; 0]).guarded([&config]));
    let program = Confinement::new(Profile::Workspace).workspace(top.join("srv"));
    let before = program.clone().control_plane(&plane);
    std::fs::rename(&config, &target).unwrap();
    symlink("saved.yml", &config).unwrap();

    // The one that was about to start, and those that start later.
    assert!(before.expose().unwrap_err().contains("symbolic link"));
    assert!(before.clone().expose_when_guarded_places_are_there().is_err());
    let why = program.control_plane(&plane).check().unwrap_err();
    assert!(why.contains("config.yml` leads to what decides"), "{why}");
    assert!(plane.places().hidden.contains(&target));

    // Where a program cannot replace the link, its target is withheld.
    let other = Confinement::new(Profile::Workspace).workspace(top.join("elsewhere"));
    let other = other.read(top.join("srv")).control_plane(&plane);
    other.expose().unwrap();
    assert!(other.hidden.contains(&target), "{:?}", other.hidden);
}

#[test]
fn a_link_in_the_place_of_a_file_of_a_protected_folder_has_its_target_withheld() {
    let (_dir, top) = folder();
    let [manifests, work] = ["tools.d", "work"].map(|name| top.join(name));
    for folder in [&manifests, &work] {
        std::fs::create_dir(folder).unwrap();
    }
    let [manifest, target] = [manifests.join("a.yaml"), work.join("a.yaml")];
    std::fs::write(&manifest, "").unwrap();
    std::fs::write(&target, "").unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&manifests, &manifest]));
    std::fs::remove_file(&manifest).unwrap();
    symlink(&target, &manifest).unwrap();
    let program = Confinement::new(Profile::Workspace).workspace(&work).control_plane(&plane);
    program.expose().unwrap();
    assert!(program.read_only.contains(&target), "{:?}", program.read_only);
    assert!(!plane.places().has_new_links());

    // A link that leads elsewhere later is followed again; its target may be missing.
    std::fs::remove_file(&manifest).unwrap();
    symlink(work.join("later.yaml"), &manifest).unwrap();
    let program = Confinement::new(Profile::Workspace).workspace(&work).control_plane(&plane);
    program.expose().unwrap();
    assert_eq!(exposed(&plane, [&manifest]), Some(manifest));
}

#[test]
fn a_link_in_the_place_of_a_folder_on_the_way_is_seen() {
    let (_dir, top) = folder();
    std::fs::create_dir(top.join("state")).unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([top.join("state/toolcrib.db")], [""; 0]));
    assert!(!plane.places().has_new_links());
    std::fs::rename(top.join("state"), top.join("moved")).unwrap();
    symlink("moved", top.join("state")).unwrap();
    assert!(plane.places().has_new_links());
    plane.refresh();
    assert!(!plane.places().has_new_links());
    assert!(plane.places().hidden.contains(&top.join("moved/toolcrib.db")));
    assert_eq!(plane.places().links, [top.join("state")]);
}

#[test]
fn what_comes_after_the_places_were_taken_out_of_the_grants_is_exposed() {
    let (_dir, top) = folder();
    let script = top.join("run.sh");
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&script]));
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    std::fs::write(&script, "true").unwrap();
    program.expose().unwrap();
    assert_eq!(exposed(&plane, [&script]), Some(script));
}

#[test]
fn a_program_that_could_make_a_guarded_place_is_refused_until_the_place_exists() {
    let (_dir, top) = folder();
    let plane = ControlPlane::new();
    let manifests = top.join("tools.d");
    plane.set(Places::resolve([""; 0], [&manifests]).guarded([&manifests]));
    let program = Confinement::new(Profile::Workspace).workspace(&top);
    let why = program.clone().control_plane(&plane).expose().unwrap_err();
    assert!(why.contains("tools.d` does not exist"), "{why}");
    std::fs::create_dir(&manifests).unwrap();
    let program = program.control_plane(&plane);
    program.expose().unwrap();
    assert_eq!(program.read_only, [manifests]);
}

#[tokio::test]
async fn a_kept_program_is_told_when_a_place_comes_into_its_grants() {
    let plane = ControlPlane::new();
    let before = plane.places();
    let program = Confinement::new(Profile::Workspace).workspace("/srv/w");
    plane.set(Places::resolve([""; 0], ["/srv/elsewhere"]));
    let told = plane.outgrown(&before, &program);
    tokio::pin!(told);
    assert!(now_or_never(told.as_mut()).await.is_none());
    plane.set(Places::resolve([""; 0], ["/srv/w/run.sh"]));
    told.await;
}

#[tokio::test(start_paused = true)]
async fn a_kept_program_is_told_when_a_file_is_replaced_by_another() {
    let (_dir, top) = folder();
    let script = top.join("run.sh");
    std::fs::write(&script, "true").unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&script]));
    let program = Confinement::new(Profile::Workspace).workspace(&top);
    let before = plane.places();
    let told = plane.outgrown(&before, &program);
    tokio::pin!(told);
    assert!(now_or_never(told.as_mut()).await.is_none());
    std::fs::write(top.join("new"), "false").unwrap();
    std::fs::rename(top.join("new"), &script).unwrap();
    told.await;
}

async fn now_or_never<F: Future + Unpin>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[test]
fn a_link_that_a_program_could_replace_is_an_objection() {
    let (_dir, top) = folder();
    symlink("/srv/tools.d", top.join("tools.d")).unwrap();
    std::fs::create_dir(top.join("below")).unwrap();
    symlink("/srv/x.yaml", top.join("below/x.yaml")).unwrap();
    let below = Places::resolve([""; 0], [top.join("below"), top.join("below/x.yaml")]);
    assert_eq!(below.links, [""; 0].map(PathBuf::from));
    let places = Places::resolve([""; 0], [top.join("tools.d")]);
    let program = Confinement::new(Profile::Workspace).workspace(&top);
    let why = places.objection(&program).unwrap();
    assert!(why.contains("could replace the link"), "{why}");
    assert_eq!(places.objection(&Confinement::new(Profile::Pure).workspace(&top)), None);
}

#[test]
fn a_start_that_is_refused_exposes_nothing() {
    let (_dir, top) = folder();
    let [guarded, script] = ["tools.d", "run.sh"].map(|name| top.join(name));
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&guarded, &script]).guarded([&guarded]));
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    program.expose().unwrap_err();
    assert_eq!(exposed(&plane, [&script]), None);
}

#[test]
fn what_a_link_to_a_manifest_leads_to_is_guarded_whatever_it_is() {
    let (_dir, top) = folder();
    let [manifests, work] = ["tools.d", "work"].map(|name| top.join(name));
    for folder in [&manifests, &work] {
        std::fs::create_dir(folder).unwrap();
    }
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&manifests]).with_links_in([&manifests], &["yaml"]));
    let start = || {
        let program = Confinement::new(Profile::Workspace).workspace(&work).control_plane(&plane);
        program.expose().map(|_running| program.read_only)
    };
    // Links with other names may lead anywhere.
    symlink(work.join("notes"), manifests.join("notes")).unwrap();
    assert_eq!(start().unwrap(), [""; 0].map(PathBuf::from));

    let [link, target] = [manifests.join("a.yaml"), work.join("a.yaml")];
    symlink(&target, &link).unwrap();
    let why = start().unwrap_err();
    assert!(why.contains("work/a.yaml` does not exist") && why.contains("link"), "{why}");
    // A folder, too, could be renamed and replaced by a file.
    std::fs::create_dir(&target).unwrap();
    assert_eq!(start().unwrap(), std::slice::from_ref(&target));
    std::fs::remove_dir(&target).unwrap();
    std::fs::write(&target, "").unwrap();
    assert_eq!(start().unwrap(), std::slice::from_ref(&target));
    std::fs::remove_file(&target).unwrap();
    std::fs::remove_file(&link).unwrap();
    assert_eq!(start().unwrap(), [""; 0].map(PathBuf::from));
}

#[test]
fn a_place_that_is_added_while_a_program_runs_is_exposed_until_a_review_after_its_end() {
    let (_dir, top) = folder();
    let script = top.join("run.sh");
    std::fs::write(&script, "true").unwrap();
    let plane = ControlPlane::new();
    let program = Confinement::new(Profile::Workspace).workspace(&top);
    let running = program.clone().control_plane(&plane).expose().unwrap();
    plane.set(Places::resolve([""; 0], [&script]));
    // From programs that start later it is withheld.
    drop(program.control_plane(&plane).expose().unwrap());
    let found = plane.exposed([&script]).unwrap();
    assert_eq!((&found.path, found.is_reviewed), (&script, false));
    drop(running);
    assert_eq!(exposed(&plane, [&script]), Some(script.clone()));
    plane.reviewed();
    assert_eq!(exposed(&plane, [&script]), None);
}

#[test]
fn a_review_while_a_program_runs_holds_for_the_content_that_was_reviewed() {
    let (_dir, top) = folder();
    let [same, changed, missing] = ["same", "changed", "missing"].map(|name| top.join(name));
    for file in [&same, &changed] {
        std::fs::write(file, "true").unwrap();
    }
    let plane = ControlPlane::new();
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    let running = program.expose().unwrap();
    plane.set(Places::resolve([""; 0], [&same, &changed, &missing]));
    plane.reviewed();
    for file in [&same, &changed, &missing] {
        let found = plane.exposed([file]).unwrap();
        assert!(found.is_reviewed, "{found}");
        assert!(found.remedy().contains("when these programs have ended"), "{found}");
    }
    std::fs::write(&changed, "evil").unwrap();
    drop(running);
    assert_eq!(exposed(&plane, [&same, &missing]), None);
    assert!(plane.exposed([&changed]).is_some_and(|found| !found.is_reviewed));
    // A change that is undone after the first look is reviewed all the same.
    std::fs::write(&changed, "true").unwrap();
    assert_eq!(exposed(&plane, [&changed]), Some(changed));
}

#[test]
fn a_file_that_is_replaced_while_a_program_runs_is_exposed() {
    let (_dir, top) = folder();
    let [script, other] = ["run.sh", "other.sh"].map(|name| top.join(name));
    for file in [&script, &other] {
        std::fs::write(file, "true").unwrap();
    }
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&script, &other]));
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    let running = program.expose().unwrap();
    assert_eq!(exposed(&plane, [&script]), None);
    // An editor saves it: what covered the old file does not cover the new one.
    std::fs::write(top.join("saved"), "true").unwrap();
    std::fs::rename(top.join("saved"), &script).unwrap();
    drop(running);
    assert_eq!(exposed(&plane, [&other, &script]), Some(script));
}

#[test]
fn a_link_that_comes_while_a_program_runs_exposes_what_it_leads_to() {
    let (_dir, top) = folder();
    let [manifests, work] = ["tools.d", "work"].map(|name| top.join(name));
    for folder in [&manifests, &work] {
        std::fs::create_dir(folder).unwrap();
    }
    let plane = ControlPlane::new();
    plane.set(Places::resolve([""; 0], [&manifests]).with_links_in([&manifests], &["yaml"]));
    let program = Confinement::new(Profile::Workspace).workspace(&work).control_plane(&plane);
    let running = program.expose().unwrap();
    symlink(work.join("a.yaml"), manifests.join("a.yaml")).unwrap();
    std::fs::write(work.join("a.yaml"), "evil").unwrap();
    // Nobody has looked before it ended.
    drop(running);
    let link = manifests.join("a.yaml");
    assert_eq!(exposed(&plane, [&link]), Some(link));
}

#[test]
fn a_file_in_an_exposed_folder_is_exposed() {
    let (_dir, top) = folder();
    let keys = top.join("keys");
    std::fs::create_dir(&keys).unwrap();
    let plane = ControlPlane::new();
    let program = Confinement::new(Profile::Workspace).workspace(&top).control_plane(&plane);
    let _running = program.expose().unwrap();
    plane.set(Places::resolve([&keys], [""; 0]));
    assert_eq!(exposed(&plane, [keys.join("one")]), Some(keys.join("one")));
    assert_eq!(exposed(&plane, [top.join("keys.txt")]), None);
}

#[test]
fn only_its_owner_reaches_an_own_folder_in_a_hidden_place() {
    let (_dir, top) = folder();
    let homes = top.join("homes");
    let [own, other] = ["a", "b"].map(|name| homes.join(name));
    for folder in [&own, &other] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::create_dir(top.join("work")).unwrap();
    let plane = ControlPlane::new();
    plane.set(Places::resolve([&homes], [""; 0]));
    let workspace = || Confinement::new(Profile::Workspace).workspace(top.join("work"));

    let owner = workspace().own_folder(&own).control_plane(&plane);
    owner.check().unwrap();
    drop(owner.expose().unwrap());
    assert_eq!(exposed(&plane, [&own]), None);
    let wide = workspace().write(&top).own_folder(&own).control_plane(&plane);
    wide.check().unwrap();
    assert_eq!(wide.hidden, std::slice::from_ref(&homes));
    for granted in [workspace().write(&other), workspace().read(&other)] {
        let why = granted.own_folder(&own).control_plane(&plane).check().unwrap_err();
        assert!(why.contains("no program may read"), "{why}");
    }
    // Of other programs' grants it is taken out.
    assert_eq!(workspace().write(&top).control_plane(&plane).hidden, std::slice::from_ref(&homes));
    let why = workspace().write(&own).control_plane(&plane).check().unwrap_err();
    assert!(why.contains("no program may read"), "{why}");
}

#[test]
fn a_place_in_an_own_folder_is_exposed_to_its_owner() {
    let (_dir, top) = folder();
    let own = top.join("homes/a");
    std::fs::create_dir_all(&own).unwrap();
    let plane = ControlPlane::new();
    let missing = own.join("key");
    plane.set(Places::resolve([&top.join("homes"), &missing], [""; 0]));
    let workspace = || Confinement::new(Profile::Workspace).workspace(&top);
    drop(workspace().control_plane(&plane).expose().unwrap());
    assert_eq!(exposed(&plane, [&missing]), None);
    drop(workspace().own_folder(&own).control_plane(&plane).expose().unwrap());
    assert_eq!(exposed(&plane, [&missing]), Some(missing));
}

#[test]
fn a_hidden_folder_that_is_created_again_is_open_to_a_program_that_runs() {
    let (_dir, top) = folder();
    let hidden = top.join("scratch");
    std::fs::create_dir(&hidden).unwrap();
    let plane = ControlPlane::new();
    let program = || {
        let program = Confinement::new(Profile::Workspace).workspace(&top).hide(&hidden);
        program.control_plane(&plane)
    };
    let running = program().expose().unwrap();
    assert!(!program().is_open_to_running(&hidden));
    // The directory is held open, so that the new one gets another inode.
    let _held = std::fs::File::open(&hidden).unwrap();
    std::fs::remove_dir(&hidden).unwrap();
    std::fs::create_dir(&hidden).unwrap();
    let later = program().expose().unwrap();
    assert!(program().is_open_to_running(&hidden));
    drop(running);
    assert!(!program().is_open_to_running(&hidden));
    drop(later);
}

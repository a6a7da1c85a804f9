//! Files that outlive the process, stay private, and go when they are old or too many.

use std::os::unix::fs::PermissionsExt;

use toolcrib_tool::ContextValues;

use super::*;

fn ada() -> Owner {
    Owner::of(&ContextValues::new().with("user", "ada"), Some("s"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn grow_old(path: &Path, by: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

#[tokio::test]
async fn what_is_kept_survives_a_restart_and_is_private() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state/spill");
    let store = FileSpill::open(&dir, FileSpill::limits()).unwrap();
    let spilled = Spilled::json("{\"a\":\"é\n\"}").with_omitted_bytes(7);
    let handle = store.put(&ada(), spilled).await.unwrap();
    drop(store);

    let store = FileSpill::open(&dir, FileSpill::limits()).unwrap();
    let page = store.read(&ada(), &handle, 6, 2).await.unwrap();
    assert_eq!((page.text.as_str(), page.total_chars, page.next_offset()), ("é\n", 10, Some(8)));
    assert_eq!((page.format, page.omitted_bytes), (SpillFormat::Json, 7));

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let kept = files(&dir);
    assert_eq!((mode(&dir), kept.len(), mode(&kept[0])), (0o700, 1, 0o600));
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    assert!(!name.contains(&handle.to_string()), "{name}");
}

#[tokio::test]
async fn another_identity_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSpill::open(dir.path().join("own"), FileSpill::limits()).unwrap();
    let handle = store.put(&ada(), Spilled::text("hers")).await.unwrap();
    for other in [
        Owner::of(&ContextValues::new().with("user", "bob"), Some("s")),
        Owner::of(&ContextValues::new().with("user", "ada"), None),
    ] {
        assert_eq!(store.read(&other, &handle, 0, 9).await, Err(SpillError::NotFound));
    }
    let never = Handle::random().unwrap();
    assert_eq!(store.read(&ada(), &never, 0, 9).await, Err(SpillError::NotFound));
}

#[tokio::test]
async fn the_oldest_go_when_there_is_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("own");
    let mut limits = FileSpill::limits();
    limits.max_entries = 2;
    limits.max_bytes = 1000;
    let store = FileSpill::open(&dir, limits).unwrap();
    let first = store.put(&ada(), Spilled::text("1")).await.unwrap();
    let second = store.put(&ada(), Spilled::text("2")).await.unwrap();
    let third = store.put(&ada(), Spilled::text("3")).await.unwrap();
    assert_eq!(store.read(&ada(), &first, 0, 9).await, Err(SpillError::NotFound));
    assert_eq!(files(&dir).len(), 2);

    // A restarted store knows what is oldest by the files.
    grow_old(&store.0.path(&SpillKey::of(&ada(), &third)), Duration::from_secs(60));
    let store = FileSpill::open(&dir, limits).unwrap();
    let large = store.put(&ada(), Spilled::text("x".repeat(900))).await.unwrap();
    assert_eq!(store.read(&ada(), &third, 0, 9).await, Err(SpillError::NotFound));
    assert!(store.read(&ada(), &second, 0, 9).await.is_ok());
    store.put(&ada(), Spilled::text("x".repeat(901))).await.unwrap();
    assert_eq!(store.read(&ada(), &large, 0, 9).await, Err(SpillError::NotFound));
    assert!(store.put(&ada(), Spilled::text("x".repeat(1001))).await.is_err());
}

#[tokio::test]
async fn what_is_old_cannot_be_read_and_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("own");
    let limits = FileSpill::limits();
    let store = FileSpill::open(&dir, limits).unwrap();
    let old = store.put(&ada(), Spilled::text("old")).await.unwrap();
    let young = store.put(&ada(), Spilled::text("young")).await.unwrap();
    grow_old(&store.0.path(&SpillKey::of(&ada(), &old)), limits.ttl);
    assert_eq!(store.read(&ada(), &old, 0, 9).await, Err(SpillError::NotFound));

    let left_behind = dir.join("x.part");
    for path in [&left_behind, &dir.join("notes.txt")] {
        fs::write(path, "x").unwrap();
        grow_old(path, limits.ttl);
    }
    let store = FileSpill::open(&dir, limits).unwrap();
    assert!(store.read(&ada(), &young, 0, 9).await.is_ok());
    let mut left: Vec<_> =
        files(&dir).iter().map(|path| path.extension().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["spill", "txt"], "only what the store has written is removed");
}

#[test]
fn a_directory_others_can_look_into_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let error = FileSpill::open(dir.path(), FileSpill::limits()).unwrap_err();
    assert!(error.to_string().contains("mode 755") && error.to_string().contains("chmod 700"));
}

#[tokio::test]
async fn a_damaged_file_is_said_to_be_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSpill::open(dir.path().join("own"), FileSpill::limits()).unwrap();
    let handle = store.put(&ada(), Spilled::text("text")).await.unwrap();
    fs::write(store.0.path(&SpillKey::of(&ada(), &handle)), "nothing of ours").unwrap();
    let error = store.read(&ada(), &handle, 0, 9).await.unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
}

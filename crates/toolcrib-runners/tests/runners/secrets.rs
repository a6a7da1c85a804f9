//! Secrets: their sources, who gets them, and who never does.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_manifest::declaration::{Declaration, StandardInput};
use toolcrib_runners::{
    CommandRunner, ExposeSecret, RunnerHost, SecretSource, SecretSources, Secrets, entry,
};
use toolcrib_tool::{Arguments, ErrorKind, Tool, ToolError, ToolOutcome};

use crate::declare::{command, context, one, sh, spec, template};

fn read(sources: SecretSources) -> Secrets {
    Secrets::read(sources)
}

fn value(secrets: &Secrets, name: &str) -> String {
    secrets.get(name).unwrap().expose_secret().to_owned()
}

fn why(secrets: &Secrets, name: &str) -> String {
    secrets.get(name).unwrap_err().to_string()
}

fn printing(script: &str) -> SecretSource {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    SecretSource::Command { argv, pass_env: Vec::new(), cwd: "/".into() }
}

async fn answer(declaration: &Declaration, secrets: &Secrets) -> Result<String, ToolError> {
    let host = RunnerHost::new("/").with_secrets(secrets.clone());
    let runner = CommandRunner::new(declaration, &host);
    let cx = context(declaration, []);
    match runner.call(Arguments::from_validated("{}".to_owned()), &cx).await? {
        ToolOutcome::Done(output) => Ok(output.text().into_owned()),
        other => panic!("not done: {other:?}"),
    }
}

fn reason(declaration: &Declaration, secrets: &Secrets) -> Option<String> {
    let host = RunnerHost::new("/").with_secrets(secrets.clone());
    entry(declaration, &host).unavailable_reason().map(str::to_owned)
}

#[test]
fn a_secret_comes_from_a_variable_a_file_a_folder_or_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("single"), "from a file\r\n").unwrap();
    fs::create_dir(at("mounted")).unwrap();
    fs::write(at("mounted/key"), "line 1\nline 2\n\n").unwrap();
    fs::write(at("mounted/named"), "never looked at").unwrap();
    let secrets = read(
        SecretSources::new()
            .named("path", SecretSource::Env("PATH".into()))
            .named("single", SecretSource::File(at("single")))
            .named("printed", printing("echo from a command; echo noise >&2"))
            .named("named", SecretSource::File(at("single")))
            .folder(at("mounted"))
            .folder(at("not there")),
    );
    assert_eq!(value(&secrets, "path"), std::env::var("PATH").unwrap());
    assert_eq!(value(&secrets, "single"), "from a file");
    assert_eq!(value(&secrets, "printed"), "from a command");
    assert_eq!(value(&secrets, "named"), "from a file", "a name goes before folders");
    // Only one line end is removed.
    assert_eq!(value(&secrets, "key"), "line 1\nline 2\n");
    let names: Vec<_> = secrets.values().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["key", "named", "path", "printed", "single"]);
}

#[test]
fn a_kubernetes_folder_is_read_through_its_links_without_its_version_folders() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, token: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("token"), token).unwrap();
    };
    version("..2026_01", "first");
    symlink("..2026_01", folder.path().join("..data")).unwrap();
    symlink("..data/token", folder.path().join("token")).unwrap();
    fs::create_dir(folder.path().join("kubernetes.io")).unwrap();
    let secrets = read(SecretSources::new().folder(folder.path()));
    assert_eq!(value(&secrets, "token"), "first");
    assert_eq!(secrets.values().len(), 1);

    // The swap with which Kubernetes rotates it.
    version("..2026_02", "second");
    symlink("..2026_02", folder.path().join("..data_tmp")).unwrap();
    fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
    assert_eq!(value(&secrets, "token"), "first", "read when it is said to");
    secrets.refresh(|values| {
        assert_eq!(values[0].1.expose_secret(), "second");
        assert_eq!(value(&secrets, "token"), "first", "nobody has it before it is masked");
    });
    assert_eq!(value(&secrets, "token"), "second");
}

#[test]
fn a_missing_secret_reports_where_it_was_looked_up_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty"), "\n").unwrap();
    fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
    fs::write(at("nul"), "a\0b").unwrap();
    fs::write(at("long"), "x".repeat(64 * 1024 + 1)).unwrap();
    fs::write(at("just"), "x".repeat(64 * 1024) + "\r\n").unwrap();
    let file = |name: &str| SecretSource::File(at(name));
    let secrets = read(
        SecretSources::new()
            .named("env", SecretSource::Env("CRIB_NO_SUCH_VARIABLE".into()))
            .named("absent", file("absent"))
            .named("folder", SecretSource::File(folder.path().to_owned()))
            .named("empty", file("empty"))
            .named("bytes", file("bytes"))
            .named("nul", file("nul"))
            .named("long", file("long"))
            .named("just", file("just"))
            .named("failed", printing("echo the-secret-itself >&2; exit 3"))
            .named("killed", printing("kill -9 $$"))
            .named("chatty", printing("head -c 1000000 /dev/zero | tr '\\0' x"))
            .named(
                "no_program",
                SecretSource::Command {
                    argv: vec!["no-such-program".into()],
                    pass_env: Vec::new(),
                    cwd: "/".into(),
                },
            )
            .folder("/run/secrets-of-nobody"),
    );
    let shown = folder.path().display().to_string();
    let said = |name: &str| why(&secrets, name).replace(&shown, "DIR");
    for (name, expected) in [
        (
            "env",
            "the variable `CRIB_NO_SUCH_VARIABLE` is not set in this environment; start the server with it",
        ),
        ("absent", "the file `DIR/absent` cannot be read: No such file or directory (os error 2)"),
        ("folder", "`DIR` is not a regular file"),
        ("empty", "the file `DIR/empty` is empty"),
        ("bytes", "the file `DIR/bytes` is not valid UTF-8"),
        ("nul", "the file `DIR/nul` contains a NUL character"),
        ("long", "the file `DIR/long` is longer than 64 KiB"),
        ("failed", "`sh` exited with code 3; run it by hand to see why"),
        ("killed", "`sh` was ended by a signal; run it by hand to see why"),
    ] {
        let expected = format!("needs the secret `{name}`: {expected} (config `secrets.{name}`)");
        assert_eq!(said(name), expected);
    }
    assert!(said("no_program").contains("the program `no-such-program` was not found"));
    assert_eq!(
        said("other"),
        "needs the secret `other`: the config's `secrets` does not name it, and no such file is in \
         `/run/secrets-of-nobody`; add `other: {env: VARIABLE}`, `{file: PATH}` or \
         `{command: [PROGRAM]}` there"
    );
    assert_eq!(value(&secrets, "just").len(), 64 * 1024);
    assert!(
        said("chatty").contains("what `sh` printed is longer than 64 KiB"),
        "{}",
        said("chatty")
    );
}

#[test]
fn a_command_runs_once_and_again_only_if_it_failed() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs");
    let script = |code: u8| format!("echo x >> '{}'; echo secret; exit {code}", runs.display());
    let count = || fs::read_to_string(&runs).unwrap_or_default().lines().count();
    let good = SecretSources::new().named("a", printing(&script(0)));

    let looked = Secrets::look(good.clone());
    assert_eq!(count(), 0, "looking at tools asks for no secret");
    assert!(looked.check("a").is_ok());
    assert_eq!(why(&looked, "a"), "needs the secret `a`: its command is not run for listings");

    let secrets = read(good);
    secrets.refresh(|_| {});
    assert_eq!((count(), value(&secrets, "a")), (1, "secret".to_owned()));

    let failing = read(SecretSources::new().named("a", printing(&script(1))));
    failing.refresh(|_| {});
    assert_eq!(count(), 3);
}

#[test]
fn a_command_is_ended_at_its_limit_and_sees_only_what_is_passed() {
    let begun = Instant::now();
    let secrets = read(
        SecretSources::new()
            .named("slow", printing("sleep 1000"))
            .named("home", printing("echo \"$HOME ${CARGO_MANIFEST_DIR-none}\"")),
    );
    // Much less than it would take by itself, however busy the machine is.
    assert!(begun.elapsed() < Duration::from_secs(500));
    assert!(why(&secrets, "slow").contains("printed no secret within 10 s"));
    let home = std::env::var("HOME").unwrap();
    assert_eq!(value(&secrets, "home"), format!("{home} none"));
}

#[tokio::test]
async fn a_tool_gets_a_secret_in_its_environment_and_on_standard_input() {
    let mut declaration = sh("printf '%s|' \"$TOKEN\"; cat");
    spec(&mut declaration).env.insert("TOKEN".into(), template("Bearer ${secret.token}"));
    spec(&mut declaration).stdin = Some(StandardInput::Text(template("pw: ${secret.password}")));
    let secrets = Secrets::from_values([("token", "two\nlines"), ("password", "hunter2-secret")]);
    assert_eq!(
        answer(&declaration, &secrets).await.unwrap(),
        "Bearer two\nlines|pw: hunter2-secret"
    );

    let error = answer(&declaration, &Secrets::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.message().starts_with("the tool needs the secret `password`: the config's"),
        "{error}"
    );
}

#[test]
fn debug_output_around_a_secret_never_contains_its_value() {
    let secrets = Secrets::from_values([("token", "hunter2-secret")]);
    let host = RunnerHost::new("/").with_secrets(secrets.clone());
    let mut declaration = sh("true");
    spec(&mut declaration).env.insert("TOKEN".into(), template("${secret.token}"));
    spec(&mut declaration).stdin = Some(StandardInput::Text(template("${secret.token}")));
    let runner = CommandRunner::new(&declaration, &host);
    let invocation =
        runner.invocation(&crate::declare::given(&json!({})), &context(&declaration, [])).unwrap();
    assert_eq!(invocation.env, [("TOKEN".to_owned(), "hunter2-secret".to_owned())]);
    let shown = format!("{host:?} {:?} {runner:?} {invocation:?}", secrets.values());
    assert!(!shown.contains("hunter2") && shown.contains("TOKEN"), "{shown}");
}

#[tokio::test]
async fn a_variable_with_a_secret_reaches_programs_only_as_that_secret() {
    let secrets = read(SecretSources::new().named("home", SecretSource::Env("HOME".into())));
    let mut passing = sh("true");
    spec(&mut passing).pass_env = vec!["LANG".into(), "HOME".into()];
    assert_eq!(
        reason(&passing, &secrets).unwrap(),
        "passes on the variable `HOME`, which holds the secret `home`: write \
         `env: {HOME: \"${secret.home}\"}` instead of `pass_env`"
    );
    assert_eq!(reason(&passing, &Secrets::default()), None);

    let referring = command([one("echo"), one("${env.HOME}")]);
    assert_eq!(
        reason(&referring, &secrets).unwrap(),
        "refers to `${env.HOME}`, which holds the secret `home`: write `${secret.home}`"
    );
    // Even if nobody checked its availability before.
    for declaration in [&passing, &referring] {
        let error = answer(declaration, &secrets).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[test]
fn a_missing_secret_makes_the_tool_unavailable() {
    let mut declaration = sh("true");
    declaration.needs.secrets = vec!["there".into(), "gone".into()];
    let sources = SecretSources::new()
        .named("there", SecretSource::Env("PATH".into()))
        .named("gone", SecretSource::File(Path::new("/no/such/secret").to_owned()));
    assert_eq!(
        reason(&declaration, &read(sources)).unwrap(),
        "needs the secret `gone`: the file `/no/such/secret` cannot be read: No such file or \
         directory (os error 2) (config `secrets.gone`)"
    );
}

#[test]
fn a_pipe_in_place_of_a_secret_file_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("value"), "the-secret-itself").unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fs::copy(at("value"), at("secret")).unwrap();
    let (secret, pipe, file) = (at("secret"), at("pipe"), at("value"));
    // The path alternates between a pipe and the file.
    let swapping = std::thread::spawn(move || {
        for _ in 0..3_000 {
            for from in [&pipe, &file] {
                let fresh = secret.with_extension("fresh");
                fs::hard_link(from, &fresh).unwrap();
                fs::rename(fresh, &secret).unwrap();
            }
        }
    });
    let (told, heard) = std::sync::mpsc::channel();
    let source = SecretSource::File(at("secret"));
    std::thread::spawn(move || {
        for _ in 0..3_000 {
            let _ = Secrets::read(SecretSources::new().named("s", source.clone()));
        }
        told.send(()).unwrap();
    });
    let read = heard.recv_timeout(std::time::Duration::from_secs(60));
    swapping.join().unwrap();
    read.expect("no read waits for a writer");
}

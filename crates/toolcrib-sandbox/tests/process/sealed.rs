//! Programs that are given files which nobody can change.

use std::os::unix::fs::PermissionsExt as _;

use toolcrib_sandbox::{Command, Confinement, Profile, SealedFile, SpawnError};

use crate::{finish, try_finish};

fn sealed(text: &[u8]) -> SealedFile {
    SealedFile::new(text).unwrap()
}

fn confined(profile: Profile, command: Command) -> Command {
    command.confine(Confinement::new(profile))
}

#[tokio::test]
async fn a_sealed_script_runs_under_every_profile_whatever_stands_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("script");
    std::fs::write(&place, "#!/bin/sh\necho changed\n").unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = sealed(b"#!/bin/sh\nread line\necho \"$line|$1|$#\"\n");
    for profile in Profile::ALL {
        let command = Command::new(&place).sealed(script.clone()).args(["a b", "c"]);
        let finished = finish(confined(profile, command).stdin("in\n")).await;
        assert_eq!(finished.stdout.text(), "in|a b|2\n", "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn a_sealed_script_finds_the_interpreter_that_its_first_line_looks_for() {
    let script = sealed(b"#!/usr/bin/env -S sh -e\necho \"[$1]\"\n");
    for profile in Profile::ALL {
        let command = Command::new("there/is/none").sealed(script.clone()).arg("x");
        let finished = finish(confined(profile, command)).await;
        assert_eq!(finished.stdout.text(), "[x]\n", "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn a_sealed_program_is_loaded_from_its_copy() {
    let echo = sealed(&std::fs::read("/bin/echo").unwrap());
    for profile in Profile::ALL {
        let command = Command::new("echo").sealed(echo.clone()).arg("hello");
        let finished = finish(confined(profile, command)).await;
        assert_eq!(finished.stdout.text(), "hello\n", "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn sealed_arguments_are_files_that_the_program_reads() {
    let files = [sealed(b"one\n"), sealed(b"two\n")];
    for profile in Profile::ALL {
        let [one, two] = files.clone();
        let text =
            "while read line; do echo \"$2$line\"; done < \"$1\"; read line < \"$3\"; echo $line";
        let command = Command::new("/bin/sh").args(["-c", text, "sh"]);
        let command = command.sealed_arg(one).arg("- ").sealed_arg(two);
        let finished = finish(confined(profile, command)).await;
        assert_eq!(finished.stdout.text(), "- one\ntwo\n", "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn a_sealed_script_beside_sealed_arguments_has_all_of_them() {
    let script = sealed(b"#!/bin/sh\nread a < \"$1\"\nread b < \"$2\"\necho \"$a$b\"\n");
    for profile in Profile::ALL {
        let command = Command::new("s").sealed(script.clone());
        let command = command.sealed_arg(sealed(b"1\n")).sealed_arg(sealed(b"2\n"));
        let finished = finish(confined(profile, command)).await;
        assert_eq!(finished.stdout.text(), "12\n", "{profile}: {finished:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_loaded_is_said_by_the_programs_name() {
    for (text, said) in [
        (&b"echo no first line\n"[..], "neither a program nor a script"),
        (b"#!/no/such/interpreter\n", "the interpreter or loader it names is missing"),
    ] {
        for profile in Profile::ALL {
            let command = Command::new("/srv/s").sealed(sealed(text));
            let error = try_finish(confined(profile, command)).await.unwrap_err();
            let SpawnError::NotExecutable { path, reason } = &error else {
                panic!("{profile}: {error:?}")
            };
            assert_eq!(path.to_str(), Some("/srv/s"));
            assert!(reason.contains(said), "{profile}: {reason}");
        }
    }
}

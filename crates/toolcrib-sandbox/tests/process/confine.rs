//! What a confined program may do, tried from within.

use std::future::pending;

use toolcrib_sandbox::{Command, Confinement, Enforced, Profile, Require, SpawnError, run};

use crate::{bounded, finish, sh};

#[tokio::test]
async fn a_trusted_program_runs_as_ever_and_says_what_holds_it() {
    let finished = finish(sh("echo a").confine(Confinement::new(Profile::Trusted))).await;
    assert_eq!(finished.stdout.text(), "a\n");
    assert_eq!(finished.enforced, Enforced::nothing());
}

#[test]
fn a_profile_is_named_as_in_manifests() {
    for profile in Profile::ALL {
        assert_eq!(profile.as_str().parse(), Ok(profile));
    }
    let error = "open".parse::<Profile>().unwrap_err();
    assert!(error.to_string().contains("`open` is no profile"), "{error}");
}

#[test]
fn only_pure_has_to_be_enforced_unless_it_is_asked_for() {
    for profile in Profile::ALL {
        let required = Confinement::new(profile).require == Require::Required;
        assert_eq!(required, profile == Profile::Pure, "{profile}");
    }
}

#[tokio::test]
async fn without_a_helper_a_profile_is_refused_and_not_weakened() {
    for profile in [Profile::Pure, Profile::Workspace, Profile::WorkspaceNet] {
        let command = Command::new("true").confine(Confinement::new(profile));
        let error = bounded(run(command, pending())).await.unwrap_err();
        assert!(matches!(error, SpawnError::NoHelper { .. }), "{error}");
        assert!(error.to_string().contains("toolcrib-jail"), "{error}");
    }
}

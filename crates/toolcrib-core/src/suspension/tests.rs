//! What grants are good for, and what submissions are accepted.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{
    Arguments, CallId, ContextValues, ErrorKind, Injection, Layer, Source, ToolDefinition,
    ToolEntry, ToolError, ToolOutput,
};

use super::*;
use crate::approval::{Decision, Remember};

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().build().expect("it starts"));

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn entry(name: &str, description: &str) -> ToolEntry {
    let definition = ToolDefinition::builder(name).description(description).build();
    ToolEntry::client(definition.expect("it is right"), Source::new(Layer::Host, "test"))
}

fn arguments(text: &str) -> Arguments {
    Arguments::from_validated(text.to_owned())
}

fn approval() -> Waiting {
    Waiting::Approval { reason: "because".to_owned(), rule: "policy.rules[0]".to_owned() }
}

/// Waits from 1,000 to 10,000.
fn suspended(id: &str, waiting: Waiting, identity: &str, text: &str) -> Suspension {
    let call = CallId::new(id);
    let entry = entry("tool", "A tool.");
    Suspension::new(&call, &entry, &arguments(text), waiting, at(1_000), at(10_000))
        .expect("there is randomness")
        .for_identity(identity)
}

async fn stored(suspension: &Suspension) -> MemorySuspensions {
    let store = MemorySuspensions::new();
    store.put(suspension).await.expect("there is room");
    store
}

async fn granted(suspension: &Suspension, resolution: Resolution) -> Result<Grant, RedeemError> {
    let store = stored(suspension).await;
    redeem(&store, suspension.id(), suspension.identity(), at(2_000), resolution, "bob").await
}

#[derive(Debug, Clone, PartialEq)]
struct Presented {
    call: &'static str,
    description: &'static str,
    arguments: &'static str,
    project: &'static str,
    identity: &'static str,
}

/// The fingerprint of a call's injected values.
fn values(project: &str) -> Fingerprint {
    Fingerprint::of_injected(&of_projects("tool").definition, &context(project))
}

fn none() -> Fingerprint {
    Fingerprint::of_json(&json!({}))
}

fn context(project: &str) -> ContextValues {
    ContextValues::new().with("project_id", project).with("trace", project.len())
}

/// A tool that takes the project from the context.
fn of_projects(description: &str) -> ToolEntry {
    let definition = ToolDefinition::builder("tool")
        .description(description)
        .injections(vec![Injection::new("project", "project_id")])
        .build();
    ToolEntry::client(definition.expect("it is right"), Source::new(Layer::Host, "test"))
}

fn presented() -> impl Strategy<Value = Presented> {
    (
        prop_oneof![Just("1"), Just("2")],
        prop_oneof![Just("A tool."), Just("Another.")],
        prop_oneof![Just(r#"{"a":1,"b":[2]}"#), Just(r#"{"a":1}"#), Just("{}")],
        prop_oneof![Just("scratch"), Just("production")],
        prop_oneof![Just(""), Just("ada"), Just("eve")],
    )
        .prop_map(|(call, description, arguments, project, identity)| Presented {
            call,
            description,
            arguments,
            project,
            identity,
        })
}

proptest! {
    #[test]
    fn a_grant_is_good_for_what_was_suspended_and_nothing_else(
        made in presented(),
        shown in presented(),
    ) {
        let call = CallId::new(made.call);
        let of = of_projects(made.description);
        let suspension =
            Suspension::new(&call, &of, &arguments(made.arguments), approval(), at(0), at(9))
                .unwrap()
                .by(Caller::new(&of.definition, &context(made.project)))
                .for_identity(made.identity);
        RUNTIME.block_on(async {
            let store = stored(&suspension).await;
            let yes = || Resolution::from(Decision::approve());
            let grant = redeem(&store, suspension.id(), shown.identity, at(5), yes(), "bob").await;
            if shown.identity != made.identity {
                prop_assert!(matches!(grant, Err(RedeemError::Unknown)));
                return Ok(());
            }
            let grant = grant.unwrap();
            let fits = grant.check(
                &CallId::new(shown.call),
                Fingerprint::of_definition(&of_projects(shown.description)),
                &arguments(shown.arguments),
                values(shown.project),
                shown.identity,
                at(6),
            );
            prop_assert_eq!(fits.is_ok(), made == shown);
            let elsewhere = grant.check(&call, Fingerprint::of_definition(&of), &arguments(made.arguments), values(made.project), "mallory", at(6));
            prop_assert_eq!(elsewhere.unwrap_err().kind(), ErrorKind::Denied);
            Ok(())
        })?;
    }

    #[test]
    fn a_suspension_is_redeemed_once_by_whoever_comes_first(
        tries in prop::collection::vec(prop_oneof![
            Just(Resolution::from(Decision::approve())),
            Just(Resolution::from(Decision::deny("no"))),
            Just(Resolution::Cancel),
            Just(Resolution::Answer(json!(1))),
            Just(Resolution::Expire),
        ], 1..8),
    ) {
        RUNTIME.block_on(async {
            let suspension = suspended("1", approval(), "ada", "{}");
            let store = stored(&suspension).await;
            let mut grants = 0;
            for resolution in tries {
                let fits = !matches!(resolution, Resolution::Answer(_) | Resolution::Expire);
                let grant = redeem(&store, suspension.id(), "ada", at(2_000), resolution, "bob").await;
                prop_assert_eq!(grant.is_ok(), fits && grants == 0);
                grants += usize::from(grant.is_ok());
            }
            Ok(())
        })?;
    }

    #[test]
    fn submissions_are_accepted_if_they_answer_every_waiting_call_once(
        submitted in prop::collection::vec(0..5_usize, 0..6),
    ) {
        // 0 and 1 wait for the client, 2 waits for approval, 3 is answered, 4 is unknown.
        let ids = ["w0", "w1", "asks", "done", "unknown"];
        let waiting = [
            suspended(ids[0], Waiting::Client, "", "{}"),
            suspended(ids[1], Waiting::Client, "", "{}"),
            suspended(ids[2], approval(), "", "{}"),
        ];
        let outstanding: Vec<_> = waiting.iter().collect();
        let submissions = submitted.iter().map(|n| Submission::new(ids[*n], "out")).collect();
        let accepted =
            check_submissions(&outstanding, &["done"], submissions, |_, output| Ok(output));

        let times = |wanted: usize| submitted.iter().filter(|n| **n == wanted).count();
        let right = times(0) == 1 && times(1) == 1 && times(2) == 0 && times(4) == 0;
        prop_assert_eq!(accepted.is_ok(), right);
        if let Ok(accepted) = accepted {
            let answered: Vec<_> = accepted.iter().map(|(one, _)| one.call_id()).collect();
            prop_assert_eq!(answered, ["w0", "w1"]);
        }
    }
}

#[tokio::test]
async fn each_resolution_fits_what_waits_for_it_and_nothing_else() {
    let input = Waiting::from(InputRequest::new("Which?", json!({})));
    let pending = Waiting::Pending { ticket: "t".to_owned() };
    let approve = || Resolution::from(Decision::approve());
    let output = || Resolution::Output(ToolOutput::from("out"));
    let answer = || Resolution::Answer(json!("this one"));
    for (waiting, approvable, takes_output, answerable) in [
        (approval(), true, false, false),
        (Waiting::Client, false, true, false),
        (pending, false, true, false),
        (input, false, false, true),
    ] {
        let suspension = suspended("1", waiting, "", "{}");
        assert_eq!(granted(&suspension, approve()).await.is_ok(), approvable);
        assert_eq!(granted(&suspension, output()).await.is_ok(), takes_output);
        assert_eq!(granted(&suspension, answer()).await.is_ok(), answerable);
        for always in [Resolution::Cancel, Decision::deny("no").into()] {
            let grant = granted(&suspension, always).await.expect("it ends any call");
            assert!(!grant.is_approved());
            assert!(grant.refusal().is_some());
        }
    }
}

#[tokio::test]
async fn what_does_not_fit_takes_nothing_from_the_store() {
    let suspension = suspended("1", approval(), "ada", "{}");
    let store = stored(&suspension).await;
    let id = suspension.id();
    let wrong = redeem(&store, id, "ada", at(2_000), Resolution::Answer(json!(1)), "bob").await;
    assert_eq!(
        wrong.expect_err("it is no answer").to_string(),
        "the call waits for approval: approve or deny it"
    );
    let early = redeem(&store, id, "ada", at(9_999), Resolution::Expire, "bob").await;
    assert!(matches!(early, Err(RedeemError::NotExpired)));
    let late = redeem(&store, id, "ada", at(10_000), Decision::approve().into(), "bob").await;
    assert!(matches!(late, Err(RedeemError::Expired)));
    assert_eq!(store.list("ada").await.expect("it works"), [suspension]);
}

#[tokio::test]
async fn an_answer_must_fit_the_question() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let input = Waiting::from(InputRequest::new("How many?", schema));
    let suspension = suspended("1", input, "", "{}");
    let wrong = granted(&suspension, Resolution::Answer(json!({"n": "few"}))).await;
    let error = wrong.expect_err("it is no number").to_string();
    assert!(error.starts_with("the answer does not fit what the tool asked for\n- "), "{error}");
    let grant = granted(&suspension, Resolution::Answer(json!({"n": 3}))).await.expect("it fits");
    assert_eq!(grant.granted(), &Granted::Answer(json!({"n": 3})));
    assert!(grant.is_approved(), "it had been approved before it ran the first time");
}

#[tokio::test]
async fn a_grant_that_lay_about_is_good_for_nothing() {
    let suspension = suspended("1", approval(), "", "{}");
    let grant = granted(&suspension, Decision::approve().into()).await.expect("it waits");
    let (call, entry) = (CallId::new("1"), entry("tool", "A tool."));
    assert!(
        grant
            .check(
                &call,
                Fingerprint::of_definition(&entry),
                &arguments("{}"),
                none(),
                "",
                at(62_000)
            )
            .is_ok()
    );
    let late = grant.check(
        &call,
        Fingerprint::of_definition(&entry),
        &arguments("{}"),
        none(),
        "",
        at(62_001),
    );
    assert_eq!(late.expect_err("it is late").message(), "the decision on this call has expired");
}

#[tokio::test]
async fn changed_arguments_take_the_place_of_the_calls() {
    let suspension = suspended("1", approval(), "", r#"{"force":true}"#);
    let decision = Decision::approve_changed(r#"{"force":false}"#);
    let grant = granted(&suspension, decision.into()).await.expect("it waits");
    assert!(grant.is_changed() && grant.is_approved());
    assert_eq!(grant.call().arguments().as_str(), r#"{"force":false}"#);
}

#[tokio::test]
async fn a_tool_that_changed_is_not_run_on_an_old_approval() {
    let suspension = suspended("1", approval(), "", "{}");
    let decision = Decision::approve().remembered(Remember::Tool);
    let grant = granted(&suspension, decision.into()).await.expect("it waits");
    let error = grant
        .check_definition(Fingerprint::of_definition(&entry("tool", "Does more now.")))
        .expect_err("it changed");
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(error.message(), "the tool changed since the call was made");
}

#[tokio::test]
async fn an_expired_call_is_answered_as_what_it_waited_for() {
    for (waiting, kind) in [
        (approval(), ErrorKind::Denied),
        (Waiting::Client, ErrorKind::Timeout),
        (Waiting::Pending { ticket: "t".to_owned() }, ErrorKind::Timeout),
    ] {
        let suspension = suspended("1", waiting, "", "{}");
        let store = stored(&suspension).await;
        let expired =
            redeem(&store, suspension.id(), "", at(11_000), Resolution::Expire, "bob").await;
        let error = expired.expect("it has expired").refusal().expect("it is no answer");
        assert_eq!(error.kind(), kind);
        assert!(error.message().contains("within 9 s"), "{error}");
    }
}

#[test]
fn the_error_of_a_submission_names_what_is_missing() {
    let waiting = ["a", "b", "c"].map(|id| suspended(id, Waiting::Client, "", "{}"));
    let outstanding: Vec<_> = waiting.iter().collect();
    let error =
        check_submissions(&outstanding, &[], vec![Submission::new("b", "out")], |_, output| {
            Ok(output)
        });
    let message = "every waiting call must be answered at once; missing: a, c";
    assert_eq!(error.expect_err("two are missing").to_string(), message);
}

#[test]
fn a_blank_output_becomes_a_placeholder_and_a_wrong_one_is_named() {
    let waiting = [suspended("a", Waiting::Client, "", "{}")];
    let outstanding: Vec<_> = waiting.iter().collect();
    let submit = |output: ToolOutput, fits: bool| {
        let accept = |_: &Suspension, output| {
            if fits { Ok(output) } else { Err(ToolError::new(ErrorKind::InvalidOutput, "too odd")) }
        };
        check_submissions(&outstanding, &[], vec![Submission::new("a", output)], accept)
    };
    for blank in [ToolOutput::new(), ToolOutput::from(" \n")] {
        assert_eq!(submit(blank, true).expect("it is right")[0].1.text(), NO_OUTPUT);
    }
    let error = submit(ToolOutput::from("x"), false).expect_err("it is wrong");
    assert_eq!(error.to_string(), "the output of the call a is not right: too odd");
}

#[test]
fn text_is_read_as_data_where_the_tool_promises_data() {
    let definition = |schema| {
        let builder = ToolDefinition::builder("t").description("A tool.");
        let builder =
            if schema { builder.output_schema(json!({"type": "object"})) } else { builder };
        builder.build().expect("it is right")
    };
    let text = || ToolOutput::from(r#"{"n": 1}"#);
    assert_eq!(client_output(&definition(false), text()).expect("it is text").data(), None);
    let output = client_output(&definition(true), text()).expect("it is JSON");
    assert_eq!(output.data(), Some(&json!({"n": 1})));
    let error = client_output(&definition(true), ToolOutput::from("one")).expect_err("no JSON");
    assert_eq!(error.kind(), ErrorKind::InvalidOutput);
}

#[test]
fn a_suspension_of_another_form_is_refused_with_what_to_do() {
    let suspension = suspended("1", approval(), "ada", "{}");
    let mut written = serde_json::to_value(&suspension).expect("it is data");
    assert_eq!(written["form"], 2);
    let mut newer = written.clone();
    newer["form"] = json!(3);
    let refused = serde_json::from_value::<Suspension>(newer).expect_err("it is newer");
    assert!(refused.to_string().contains("by another version of toolcrib"), "{refused}");
    let members = written.as_object_mut().expect("an object");
    for newer in ["form", "caller", "shown"] {
        members.remove(newer);
    }
    let refused = serde_json::from_value::<Suspension>(written).expect_err("it is old");
    assert!(refused.to_string().contains("make the call again"), "{refused}");
}

#[test]
fn a_call_whose_taker_died_is_answered_with_its_refusal_or_may_have_run() {
    for (kind, expected) in [
        (ResolutionKind::Cancelled, ErrorKind::Cancelled),
        (ResolutionKind::Denied, ErrorKind::Denied),
        (ResolutionKind::Revoked, ErrorKind::Denied),
        (ResolutionKind::Expired, ErrorKind::Denied),
        (ResolutionKind::Approved, ErrorKind::OutcomeUnknown),
        (ResolutionKind::Answered, ErrorKind::OutcomeUnknown),
        (ResolutionKind::OutputSubmitted, ErrorKind::OutcomeUnknown),
    ] {
        let call = suspended("1", approval(), "ada", "{}");
        let resolved = Resolved::new(&call, kind, "bob", at(2_000));
        let lost = Settled::running(call, at(2_000)).lost(Some(&resolved));
        let result = lost.result().expect("it has its answer");
        assert_eq!(result.error_kind(), Some(expected), "{kind:?}: {}", result.text());
    }
}

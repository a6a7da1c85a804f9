//! Two servers over one database: who may approve a call that waits in one of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::approval::{Approvals, CallerRights, CallerStatus, DecideError, Decision};
use toolcrib_core::suspension::{Answer, Caller, Suspension, SuspensionStore as _};
use toolcrib_core::{Executor, Registration, Registry, RegistryBuilder, TurnOptions};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{
    Approval, Identity, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn,
};

use crate::fixture::{on_disk, suspended};

fn server(home: &Path) -> Executor {
    let database = Database::open(home).expect("it is ours");
    let definition = ToolDefinition::builder("remove")
        .description("Remove.")
        .approval(Approval::Always)
        .build()
        .expect("it is right");
    let body = tool_fn(|_: Value, _| async { "removed" });
    let tool = ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"));
    let mut registry = RegistryBuilder::new();
    assert_eq!(registry.register(tool), Registration::Registered);
    Executor::builder(Registry::new(registry.build()))
        .suspensions(Arc::new(Suspensions::new(&database)))
        .build()
}

/// A call of a client that is connected to this server.
async fn waiting(server: &Executor) -> Suspension {
    let call = ToolCall::new("1", "remove", "{}");
    match server.turn(TurnOptions::default().client("stdio")).start(call).await {
        Answer::Suspended(waiting) => *waiting,
        Answer::Done(result) => panic!("it waits: {}", result.text()),
    }
}

fn approvals(server: &Executor) -> Approvals {
    let operator = server.turn(TurnOptions::default().client("operator").may_approve(true));
    operator.approvals().expect("it has the right")
}

/// The clients of a server that has no client of this name.
struct Others;

impl CallerRights for Others {
    fn caller_status(&self, _: &Caller) -> CallerStatus {
        CallerStatus::Revoked { reason: "it was removed".to_owned() }
    }
}

#[tokio::test]
async fn a_call_of_another_servers_client_is_approved_where_it_waits() {
    let home = tempfile::tempdir().expect("there is room");
    let (own, other) = (server(home.path()), server(home.path()));
    let table = Arc::new(Others);
    other.add_caller_rights(&table);
    let call = waiting(&own).await;

    let refused = approvals(&other).decide(call.id(), Decision::approve()).await;
    let Err(DecideError::Elsewhere { process }) = refused else { panic!("{refused:?}") };
    assert_eq!(process, std::process::id());
    approvals(&other).end_revoked(&["stdio".into()]).await.expect("it works");
    assert_eq!(approvals(&own).list().await.expect("it works").len(), 1, "it still waits");

    let decided =
        approvals(&own).decide(call.id(), Decision::approve()).await.expect("it is its own");
    let settled = decided.outcome(Duration::from_secs(20)).await.expect("it ends");
    assert!(settled.result().expect("it is done").is_success());
}

#[tokio::test]
async fn any_server_may_decide_a_call_whose_server_has_ended() {
    let home = tempfile::tempdir().expect("there is room");
    let (own, other) = (server(home.path()), server(home.path()));
    let table = Arc::new(Others);
    other.add_caller_rights(&table);
    let call = waiting(&own).await;
    drop(own);
    let mut refused = approvals(&other).decide(call.id(), Decision::approve()).await;
    for _ in 0..200 {
        if !matches!(refused, Err(DecideError::Elsewhere { .. })) {
            break;
        }
        // The database's thread ends by itself.
        tokio::time::sleep(Duration::from_millis(20)).await;
        refused = approvals(&other).decide(call.id(), Decision::approve()).await;
    }
    assert!(matches!(refused, Err(DecideError::Revoked(_))), "{refused:?}");
}

#[tokio::test]
async fn a_call_waits_in_the_server_that_stored_it() {
    let (home, own) = on_disk();
    let other = Database::open(home.path()).expect("it is ours");
    let call = suspended("ada", 1, 100);
    Suspensions::new(&own).put(&call).await.expect("there is room");
    let asks = async |database: &Database| {
        Suspensions::new(database).waits_elsewhere(call.id()).await.expect("it works")
    };
    assert_eq!(asks(&own).await, None);
    assert_eq!(asks(&other).await, Some(std::process::id()));
}

#[tokio::test]
async fn a_caller_gets_its_result_after_a_restart_and_an_approval_in_another_server() {
    let home = tempfile::tempdir().expect("there is room");
    let (own, other) = (server(home.path()), server(home.path()));
    let ada = || TurnOptions::default().identity(Identity::user("ada"));
    let Answer::Suspended(call) = own.turn(ada()).start(ToolCall::new("1", "remove", "{}")).await
    else {
        panic!("it waits");
    };
    let kept = serde_json::to_string(&call).expect("it is plain data");
    drop(own);

    let restarted = server(home.path());
    let call: Suspension = serde_json::from_str(&kept).expect("it reads what it wrote");
    let turn = restarted.turn(ada());
    let approves = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        approvals(&other).decide(call.id(), Decision::approve()).await.expect("it holds");
    };
    let (result, ()) = tokio::join!(turn.result_of(&call), approves);
    assert_eq!(result.expect("the store works").text(), "removed");
    let again = turn.result_of(&call).await.expect("the store works");
    assert!(again.text().contains("approved by operator"), "{}", again.text());
}

//! The switch that keeps tests from asking real models. It is for the whole process, so it has a test binary of its own.

use std::sync::Arc;

use toolcrib_agent::Agent;
use toolcrib_agent::model::{Endpoint, ScriptedModel, ScriptedTurn, deny_model_requests};
use toolcrib_agent::run::RunState;
use toolcrib_core::{Executor, ExecutorConfig, Registry};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_wire::model::Wire;

#[tokio::test]
async fn denied_requests_are_not_sent_and_scripted_models_still_answer() {
    let server = ModelServer::start(Wire::Chat, [Reply::text("Hi.")]).await;
    deny_model_requests();
    let executor =
        || Executor::new(Registry::scratch().build().unwrap(), ExecutorConfig::default());
    let model = Endpoint::new(Wire::Chat, &server.base_url(), "scripted")
        .allow("127.0.0.0/8".parse().unwrap());
    let report = Agent::builder(executor(), Arc::new(model)).build().run("Hello.").await.unwrap();
    assert_eq!(report.state(), RunState::Failed);
    assert_eq!(server.requests().len(), 0);
    let model = ScriptedModel::new([ScriptedTurn::text("Hi.")]);
    let report = Agent::builder(executor(), Arc::new(model)).build().run("Hello.").await.unwrap();
    assert_eq!(report.text(), "Hi.");
}

//! Asks the providers of models: which do not answer, and which models of agents they do not have.

use std::time::Duration;

use tokio::task::JoinSet;
use toolcrib::settings::{LoadedConfig, ModelName};
use toolcrib::tool::fully_visible;

use super::findings::Findings;
use crate::options::Options;
use crate::screen::count;
use crate::{runtime, startup};

/// How long one provider may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Asks every provider once for its models, all at the same time.
pub(super) fn look(options: &Options, loaded: &LoadedConfig, findings: &mut Findings) {
    let providers = &loaded.config().providers;
    if providers.is_empty() {
        return;
    }
    // The reason that it cannot start is reported with the tools.
    let Ok(started) = startup::without_state(options) else { return };
    let mut used: Vec<&ModelName> = Vec::new();
    for agent in loaded.config().agents.values() {
        used.extend([&agent.model].into_iter().chain(&agent.fallback));
    }
    let asked = runtime::block_on(async {
        let mut asked = JoinSet::new();
        for (name, provider) in providers {
            let (crib, name, provider) = (started.crib.clone(), name.clone(), provider.clone());
            asked.spawn(async move {
                let answer = crib.models_of(&name, &provider, LIMIT).await;
                (name, answer)
            });
        }
        let mut answers = asked.join_all().await;
        started.crib.shutdown(Duration::ZERO).await;
        answers.sort_by(|(one, _), (other, _)| one.cmp(other));
        answers
    });
    for (name, answer) in asked.unwrap_or_default() {
        match answer {
            Ok(models) => {
                let has = count(models.len(), "model");
                findings.good("providers", format!("`{name}` answers and has {has}"));
                let of_it = used.iter().filter(|model| model.provider() == name);
                for model in of_it.filter(|model| !models.iter().any(|one| one == model.model())) {
                    findings.warn(
                        "providers",
                        format!("`{name}` does not list the model `{}`", model.model()),
                        "correct the name in `agents`; some providers answer to names that they do not list",
                    );
                }
            }
            Err(error) => findings.warn(
                "providers",
                fully_visible(&error.to_string()).into_owned(),
                "runs of agents that use it fail; correct its settings under `providers`",
            ),
        }
    }
}

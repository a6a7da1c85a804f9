//! Why an agent of a config cannot be used.

use std::fmt;

/// Why an agent of a config cannot be used, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentSetupError {
    /// The config has no provider of models.
    NoProvider,
    /// An agent or a model has to be named, or the name is unknown.
    Choose {
        /// The problem and the names that there are.
        message: String,
    },
    /// The model is not declared.
    UnknownModel {
        /// The model as it was named.
        model: String,
        /// The problem.
        problem: String,
        /// What to write.
        help: String,
    },
    /// The API key is missing.
    NoKey {
        /// The entry of `providers`.
        provider: String,
        /// The secret that it names.
        secret: String,
        /// Why the secret is missing.
        reason: String,
    },
    /// The provider does not answer as it should.
    Unreachable {
        /// The entry of `providers`.
        provider: String,
        /// The problem.
        problem: String,
    },
}

impl AgentSetupError {
    /// What to write into a config that has no provider.
    pub const EXAMPLE: &str = "\
secrets:
  model_key: {env: OPENAI_API_KEY}
providers:
  openai:
    kind: responses        # or chat, or anthropic
    base_url: https://api.openai.com/v1
    api_key: ${secret.model_key}
agents:
  default:
    model: openai/MODEL
    instruction: Answer briefly.";

    pub(super) fn other(error: impl fmt::Display) -> Self {
        Self::Choose { message: error.to_string() }
    }

    pub(super) fn choose_agent<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        Self::other(format!("name an agent with --agent: {}", list(names)))
    }

    pub(super) fn unknown_agent<'a>(name: &str, names: impl Iterator<Item = &'a String>) -> Self {
        let names = list(names);
        Self::other(match names.as_str() {
            "" => format!(
                "there is no agent `{name}`: none is declared under `agents` in the config. --model \
                 PROVIDER/MODEL needs none"
            ),
            _ => format!("there is no agent `{name}`; declared under `agents`: {names}"),
        })
    }

    pub(super) fn choose_model<'a>(
        providers: impl Iterator<Item = &'a String>,
        models: &[String],
    ) -> Self {
        Self::other(match models {
            [] => format!(
                "name a model with --model PROVIDER/MODEL, or declare an agent under `agents`; providers: {}",
                list(providers)
            ),
            _ => format!("name a model with --model: {}", list(models.iter())),
        })
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl fmt::Display for AgentSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProvider => f.write_str("the config declares no provider of models"),
            Self::Choose { message } => f.write_str(message),
            Self::UnknownModel { model, problem, help } => {
                write!(f, "the model `{model}` cannot be used: {problem}; {help}")
            }
            Self::NoKey { provider, secret, reason } => write!(
                f,
                "`providers.{provider}.api_key` names the secret `{secret}`, which is missing: {reason}"
            ),
            Self::Unreachable { provider, problem } => {
                write!(f, "the provider `{provider}` cannot be used: {problem}")
            }
        }
    }
}

impl std::error::Error for AgentSetupError {}

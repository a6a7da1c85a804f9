//! Asks an API which models it has.

use serde_json::Value;
use tokio::time::timeout;
use toolcrib_net::{NamedBy, Target};

use super::endpoint::{cause, refused, setup};
use super::{AttemptError, AttemptErrorKind, Endpoint};

/// The most bytes of the list that are read.
const MAX_BYTES: usize = 4 * 1024 * 1024;

impl Endpoint {
    /// Asks the API once for its models (`GET /models`), as a check of its address and of the key. It takes at most the
    /// time until the first event of an answer, for the head and for the list. No model is asked anything.
    pub async fn models(&self) -> Result<Vec<String>, AttemptError> {
        let url = format!("{}/models", self.base);
        let target = Target::parse(&url, NamedBy::Operator).map_err(|error| {
            setup(format!("the address of the provider cannot be used: {error}"))
        })?;
        let client = self
            .client
            .of_server(&target)
            .await
            .map_err(|error| setup(format!("the provider cannot be connected to: {error}")))?;
        let limit = self.timeouts.first_event;
        let late = || {
            let message = format!("no answer within {limit:?}");
            AttemptError::new(AttemptErrorKind::Timeout, message)
        };
        let sent = client.get(target.url().clone()).headers(self.request_headers()?).send();
        let mut response = timeout(limit, sent).await.map_err(|_| late())?.map_err(|error| {
            let message = format!("no answer from {}: {}", target.origin(), cause(&error));
            AttemptError::new(AttemptErrorKind::Connect, message)
        })?;
        if !response.status().is_success() {
            return Err(refused(response, limit).await);
        }
        let mut body = Vec::new();
        let read = async {
            while let Some(piece) = response.chunk().await? {
                body.extend_from_slice(&piece);
                if body.len() > MAX_BYTES {
                    break;
                }
            }
            Ok::<_, toolcrib_net::TransportError>(())
        };
        timeout(limit, read).await.map_err(|_| late())?.map_err(|error| {
            let message = format!("the connection ended inside the list: {}", cause(&error));
            AttemptError::new(AttemptErrorKind::Cut, message)
        })?;
        let malformed = || {
            let message = format!("{} does not answer with a list of models", target.origin());
            AttemptError::new(AttemptErrorKind::Malformed, message)
        };
        let list: Value = serde_json::from_slice(&body).map_err(|_| malformed())?;
        let models = list["data"].as_array().ok_or_else(malformed)?;
        let names = models.iter().filter_map(|model| model["id"].as_str());
        Ok(names.map(str::to_owned).collect())
    }
}

//! What a WebSocket knows of its last response, if nobody else does.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolcrib_core::run::RunId;
use toolcrib_wire::api::{ApiError, ErrorType, StreamEvent};
use toolcrib_wire::model::Usage;
use toolcrib_wire::responses::{ResponseResource, ResponseWriter, WriterSettings};

use super::message::Create;
use crate::{ResponseId, UnstoredResponse};

/// The last response of a socket, if only the socket knows it.
#[derive(Default)]
pub(super) struct Memory(Option<Known>);

struct Known {
    id: String,
    kind: Kind,
}

enum Kind {
    /// A response that is not stored.
    Response(UnstoredResponse),
    /// A request that prepared the next one: what it said, and what it went on from.
    Prepared { input: Vec<Value>, before: Option<String>, unstored: Option<UnstoredResponse> },
}

impl Memory {
    fn of(&self, id: Option<&str>) -> Option<&Kind> {
        let known = self.0.as_ref()?;
        (Some(&*known.id) == id).then_some(&known.kind)
    }

    /// Keeps the last response. One that is stored is known to the server.
    pub(super) fn remember(&mut self, id: &str, unstored: Option<UnstoredResponse>) {
        self.0 = unstored.map(|own| Known { id: id.to_owned(), kind: Kind::Response(own) });
    }

    /// Forgets a response from which a request that has failed went on.
    pub(super) fn forget(&mut self, id: Option<&str>) {
        if self.of(id).is_some() {
            self.0 = None;
        }
    }

    /// A request together with the one that prepared it, and the response from which it goes on, if only the socket knows
    /// that.
    pub(super) fn resolved(
        &self,
        create: Create,
        max_bytes: usize,
    ) -> Result<(Create, Option<UnstoredResponse>), ApiError> {
        match self.of(create.request.previous_response_id.as_deref()) {
            None => Ok((create, None)),
            Some(Kind::Response(unstored)) => Ok((create, Some(unstored.clone()))),
            Some(Kind::Prepared { input, before, unstored }) => {
                let mut input = input.clone();
                input.extend(create.input());
                let create = create.with(input, before.as_deref())?;
                if create.body.to_string().len() > max_bytes {
                    let message = format!(
                        "the request and what prepared it are longer than {max_bytes} bytes together"
                    );
                    return Err(ApiError::invalid(message).with_status(413).with_param("input"));
                }
                Ok((create, unstored.clone()))
            }
        }
    }

    /// Keeps a request that prepares the next one. Its response is empty: no model is asked.
    pub(super) fn prepare(
        &mut self,
        create: Create,
        unstored: Option<UnstoredResponse>,
    ) -> Result<Vec<StreamEvent>, ApiError> {
        let input = create.input();
        let Create { request, .. } = create;
        let model = request.model.as_deref().ok_or_else(|| ApiError::missing("model"))?;
        let run = RunId::random()
            .map_err(|_| ApiError::new(ErrorType::Server, "the system has no random numbers"))?;
        let id = ResponseId { run, row: 0 }.to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let resource = ResponseResource::new(id.as_str(), now, model, &request);
        // It has no items.
        let mut writer = ResponseWriter::new(resource, WriterSettings::default(), String::new);
        let mut events = writer.begin();
        events.extend(writer.complete(now, Some(Usage::default())));
        let before = request.previous_response_id;
        self.0 = Some(Known { id, kind: Kind::Prepared { input, before, unstored } });
        Ok(events)
    }
}

//! A response in the journal of its run: the rows from its request to the next one.

use serde_json::Value;
use toolcrib_agent::run::AgentRun;
use toolcrib_agent::{Agent, ClientRequest, JournalEntry, JournalRow};
use toolcrib_core::Turn;
use toolcrib_core::run::Seq;
use toolcrib_core::suspension::Suspension;
use toolcrib_http::ResponseId;
use toolcrib_wire::api::{ApiError, StreamEvent};
use toolcrib_wire::responses::{Dialect, Include, ResponseRequest};

use super::presenter::Presenter;
use super::{fault, of_run};

/// Rows that are read at a time.
const ROWS: usize = 256;

/// The members of a request's note.
const REQUEST: &str = "request";
const INPUT: &str = "input";

/// What is kept of a request beside what the run needs: the request itself, and its input as it is listed.
pub(super) fn note(request: &Value, input: &[Value]) -> Value {
    serde_json::json!({REQUEST: request, INPUT: input})
}

/// The note of a request that has the same wishes and another input.
pub(super) fn with_input(mut note: Value, input: Vec<Value>) -> Value {
    note[INPUT] = input.into();
    note
}

/// A response in the journal of its run.
pub(super) struct Segment {
    id: ResponseId,
    /// The rows of the run up to the end of the response.
    rows: Vec<(Seq, JournalRow)>,
    /// The row of the request after this one, and whether there are more.
    next: Option<(Seq, bool)>,
}

impl Segment {
    pub(super) async fn load(agent: &Agent, id: &ResponseId) -> Result<Self, ApiError> {
        let mut rows: Vec<(Seq, JournalRow)> = Vec::new();
        loop {
            let after = rows.last().map_or(0, |(seq, _)| *seq);
            let page = agent.rows(&id.run, after, ROWS).await;
            let page = page.map_err(|error| of_run(id, error))?;
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        let requests: Vec<Seq> = rows
            .iter()
            .filter(|(_, row)| matches!(row.entry, JournalEntry::Requested(_)))
            .map(|(seq, _)| *seq)
            .collect();
        let is_removed = |row: &JournalRow| matches!(row.entry, JournalEntry::RequestRemoved { row } if row == id.row);
        let is_removed = rows.iter().any(|(_, row)| is_removed(row));
        let at = requests.iter().position(|row| *row == id.row && !is_removed);
        let at = at.ok_or_else(|| ApiError::response_not_found(&id.to_string()))?;
        let next = requests.get(at + 1).map(|next| (*next, requests.len() > at + 2));
        if let Some((next, _)) = next {
            rows.retain(|(seq, _)| *seq < next);
        }
        Ok(Self { id: id.clone(), rows, next })
    }

    /// Its id.
    pub(super) fn id(&self) -> &ResponseId {
        &self.id
    }

    /// Whether no other request followed.
    pub(super) fn is_tip(&self) -> bool {
        self.next.is_none()
    }

    /// Whether exactly one request followed.
    pub(super) fn is_before_tip(&self) -> bool {
        matches!(self.next, Some((_, false)))
    }

    /// The response after this one in the same run.
    pub(super) fn next(&self) -> Option<ResponseId> {
        self.next.map(|(row, _)| ResponseId { run: self.id.run.clone(), row })
    }

    /// The calls for somebody to decide on at the end of the response, also those of sub-agents.
    pub(super) async fn waiting(&self, agent: &Agent) -> Result<Vec<Suspension>, ApiError> {
        if self.is_tip() && self.state()?.waiting().next().is_some() {
            let report = agent.load(&self.id.run).await.map_err(|error| of_run(&self.id, error))?;
            return Ok(report.waiting().cloned().collect());
        }
        Ok(Vec::new())
    }

    /// The run at the end of the response.
    pub(super) fn state(&self) -> Result<AgentRun, ApiError> {
        AgentRun::fold(self.rows.iter().map(|(_, row)| row.clone()))
            .map_err(|error| fault("the conversation cannot be read", &error))
    }

    fn request_row(&self) -> Option<(&JournalRow, &ClientRequest)> {
        self.rows.iter().find_map(|(seq, row)| match &row.entry {
            JournalEntry::Requested(request) if *seq == self.id.row => Some((row, &**request)),
            _ => None,
        })
    }

    /// What the client asked.
    pub(super) fn request(&self) -> Result<ResponseRequest, ApiError> {
        let note = self.request_row().map(|(_, request)| request.note[REQUEST].to_string());
        ResponseRequest::read(&note.unwrap_or_default())
            .map_err(|error| fault("the request of the response cannot be read", &error))
    }

    pub(super) fn is_background(&self) -> Result<bool, ApiError> {
        Ok(self.request()?.background)
    }

    /// What the client said, as it is listed.
    pub(super) fn input(&self) -> Vec<Value> {
        let note = self.request_row().map(|(_, request)| &request.note[INPUT]);
        note.and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// What shows the response, from its beginning, with what the request wants to see and what else is wanted now.
    pub(super) fn presenter(
        &self,
        shown_by: (Turn, Dialect),
        include: Include,
    ) -> Result<Presenter, ApiError> {
        let Some((row, request)) = self.request_row() else {
            return Err(ApiError::response_not_found(&self.id.to_string()));
        };
        let created_at = row.at.unix_millis() / 1_000;
        let mut asked = self.request()?;
        asked.include = asked.include.and(include);
        Ok(Presenter::new(&self.id, created_at, &asked, &request.settings, shown_by))
    }

    /// The events that the rows make.
    pub(super) fn events(&self, presenter: &mut Presenter) -> Vec<StreamEvent> {
        let mut events = presenter.begin();
        let before = self.rows.iter().filter(|(seq, _)| *seq < self.id.row);
        if let Ok(state) = AgentRun::fold(before.map(|(_, row)| row.clone())) {
            presenter.take_over(&state);
        }
        let own = self.rows.iter().filter(|(seq, _)| *seq > self.id.row);
        for (_, row) in own {
            events.extend(presenter.replayed(row));
        }
        events
    }
}

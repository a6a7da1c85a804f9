//! Requests of clients that bring their own tools, and the calls of those tools.

use std::sync::Arc;

use toolcrib_core::run::Seq;
use toolcrib_tool::CallId;

use super::apply::check_messages;
use super::calls::{CallState, RoundCall};
use super::{AgentRun, LastRequest, Phase};
use crate::request::{ClientRequest, call_ids, groups};

impl AgentRun {
    /// A client asks something. The calls that it has are answered by that.
    pub(super) fn request(&mut self, request: ClientRequest) -> Result<(), &'static str> {
        let ClientRequest { history, results, input, settings, .. } = request;
        check_messages(&input)?;
        let waits = self.waiting().next().is_some();
        if waits && !(input.is_empty() && history.is_empty()) {
            return Err("calls wait for somebody");
        }
        if self.outcome.is_none() {
            for result in results {
                let id = result.call_id().clone();
                if !self.handed_over().any(|(call, _)| *call == id) {
                    return Err("it answers a call that the client does not have");
                }
                self.update(id.as_str(), CallState::Done(Box::new(result)))?;
            }
            self.end_round();
            if matches!(self.phase, Phase::Calling { .. })
                && (!waits || self.handed_over().next().is_some())
            {
                return Err("calls have no answer yet");
            }
            if matches!(self.phase, Phase::Asking { .. } | Phase::Summarizing { .. }) {
                self.lose_attempt(false);
            }
        } else if !results.is_empty() {
            return Err("it answers a call that the client does not have");
        }
        self.outcome = None;
        self.begin_budget();
        if !waits {
            self.begin_again();
        }
        Arc::make_mut(&mut self.call_ids).extend(call_ids(&history).cloned());
        for group in groups(history) {
            self.context.push(group);
        }
        if !waits && !self.context.is_in_pairs() {
            return Err("its history separates a call from its result");
        }
        if !input.is_empty() {
            self.context.push(input);
        }
        let (row, rounds_before) = (self.version + 1, self.rounds);
        self.requests.insert(row);
        self.request = Some(Arc::new(LastRequest { row, settings, rounds_before }));
        Ok(())
    }

    /// The client removes a request.
    pub(super) fn remove_request(&mut self, row: Seq) -> Result<(), &'static str> {
        if self.requests.remove(&row) { Ok(()) } else { Err("there is no such request") }
    }

    /// The client gets calls of its own tools.
    pub(super) fn hand_over(&mut self, ids: &[CallId]) -> Result<(), &'static str> {
        let Phase::Calling { calls, .. } = &mut self.phase else {
            return Err("there are no calls to hand over");
        };
        for id in ids {
            let is_it = |call: &&mut RoundCall| call.id == *id && call.is_for_client;
            let call = calls.iter_mut().find(is_it).ok_or("it hands over an unknown call")?;
            if !matches!(call.state, CallState::Planned) {
                return Err("it hands over a call again");
            }
            call.state = CallState::HandedOver;
        }
        Ok(())
    }
}

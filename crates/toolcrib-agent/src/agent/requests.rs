//! Requests of clients that bring their own tools.

use toolcrib_core::run::{RunId, Seq};

use super::control::RunControl;
use super::driver::Driver;
use super::{Agent, AgentError, RunReport};
use crate::entry::JournalEntry;
use crate::request::ClientRequest;

impl Agent {
    /// Begins a run with a client's request, without driving it: it goes on when it is [resumed](Self::resume).
    pub async fn begin_request(&self, request: ClientRequest) -> Result<RunReport, AgentError> {
        let (id, control) = (RunId::random()?, RunControl::new());
        let entry = JournalEntry::Requested(Box::new(request));
        let driver = Driver::start(&self.0, id, None, entry, &control).await?;
        driver.release(Ok(())).await
    }

    /// Adds a client's request to a run that rests, even if it had ended, without driving it. Fails without effect if
    /// its last request is not in row `last`, if the results of the calls that the client has are not all there, or if
    /// other calls have no answer; a request without messages can come before decisions on those.
    pub async fn add_request(
        &self,
        run: &RunId,
        last: Seq,
        request: ClientRequest,
    ) -> Result<RunReport, AgentError> {
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, &RunControl::new()).await?;
        Box::pin(driver.add_request(last, request)).await
    }

    /// Removes a client's request and what came of it from what is shown, and the run if it was the last one of a run
    /// that has ended.
    pub async fn remove_request(&self, run: &RunId, row: Seq) -> Result<(), AgentError> {
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, &RunControl::new()).await?;
        let report = Box::pin(driver.remove_request(row)).await?;
        if report.run().requests().next().is_none() && report.outcome().is_some() {
            self.remove(run).await?;
        }
        Ok(())
    }
}

impl Driver<'_> {
    async fn remove_request(mut self, row: Seq) -> Result<RunReport, AgentError> {
        let done = if self.run.has_request(row) {
            self.append(vec![JournalEntry::RequestRemoved { row }]).await
        } else {
            Err(AgentError::Unknown)
        };
        self.release(done).await
    }

    async fn add_request(
        mut self,
        last: Seq,
        request: ClientRequest,
    ) -> Result<RunReport, AgentError> {
        let problem = if self.run.last_request() == Some(last) {
            let has = |(id, _)| request.results.iter().any(|result| result.call_id() == id);
            let is_waiting = self.run.waiting().next().is_some();
            // Decisions on waiting calls follow.
            let waits = is_waiting && !(request.input.is_empty() && request.history.is_empty());
            let is_answered = self.run.handed_over().all(has)
                && request.results.len() == self.run.handed_over().count();
            let is_at_rest = self.run.outcome().is_some()
                || self.run.paused().is_some()
                || is_waiting
                || self.run.handed_over().next().is_some();
            match (is_answered, waits, is_at_rest) {
                (true, false, true) => None,
                (false, _, _) => Some("has other calls without a result"),
                (_, true, _) => Some("has calls that wait for somebody"),
                (_, _, false) => Some("is not at rest"),
            }
        } else {
            Some("has had another request since")
        };
        let done = match problem {
            Some(problem) => Err(AgentError::NotNow { run: self.id.clone(), problem }),
            None => self.append(vec![JournalEntry::Requested(Box::new(request))]).await,
        };
        self.release(done).await
    }
}

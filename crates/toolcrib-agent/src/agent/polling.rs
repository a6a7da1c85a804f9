//! Calls of tools for polling are not made too often.

use tokio::time::{Instant, sleep};
use toolcrib_tool::ToolCall;

use super::AgentEvent;
use super::asking::sleep_for;
use super::driver::Driver;

impl Driver<'_> {
    /// Waits until the tools for polling among the calls may be called again; `false` if the run has to stop meanwhile.
    pub(super) async fn wait_for_poll(&mut self, calls: &[ToolCall]) -> bool {
        let (now, pause) = (Instant::now(), self.agent.poll_every);
        let names = calls.iter().map(ToolCall::name);
        let polled: Vec<&str> = names.filter(|name| self.run.is_polled(name)).collect();
        let due = polled.iter().filter_map(|name| Some((*self.polled.get(*name)? + pause, *name)));
        if let Some((due, tool)) = due.max().filter(|(due, _)| *due > now) {
            let wait = due - now;
            self.agent.show(&AgentEvent::PollWait { run: &self.id, tool, wait });
            let (control, time_left) = (self.control.clone(), self.time_left());
            let waited = async {
                tokio::select! {
                    () = sleep(wait) => true,
                    () = control.stopped() => false,
                    () = sleep_for(time_left) => true,
                }
            };
            if !self.attend(waited).await {
                return false;
            }
        }
        for tool in polled {
            self.polled.insert(tool.into(), Instant::now());
        }
        true
    }
}

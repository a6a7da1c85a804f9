//! A call's answer on its way out.

use std::sync::Arc;

use toolcrib_tool::{Content, ErrorKind, ToolResult};

use crate::cache::SpillMemo;
use crate::call::nested::NestedWait;
use crate::output::budget::Whole;
use crate::suspension::{Answer, Suspension};

/// A call's answer, and what its batch needs to know of it.
pub(crate) struct Answered {
    pub(crate) result: ToolResult,
    /// The call's own text budget, in characters.
    pub(crate) limit: usize,
    pub(crate) side: SideOutput,
}

/// What belongs to an answer beside the result.
#[derive(Default)]
pub(crate) struct SideOutput {
    /// What was there before the text was cut.
    pub(crate) whole: Option<Whole>,
    /// Where the text was spilled, of an answer that others get too.
    pub(crate) spilled: Option<Arc<SpillMemo>>,
    /// The call waits; the result only says so.
    pub(crate) suspension: Option<Box<Suspension>>,
    /// A nested call waits, and its maker with it.
    pub(crate) wait: Option<Box<NestedWait>>,
}

/// The part of an answer that does not pass through middleware.
pub(super) struct Bypass {
    limit: usize,
    side: SideOutput,
    /// What the text was cut to, if it was.
    cut: Option<Vec<Content>>,
}

impl Answered {
    pub(super) fn split(self) -> (ToolResult, Bypass) {
        let cut = self.whole().and(self.result.output()).map(|output| output.content().to_vec());
        let Self { result, limit, side } = self;
        (result, Bypass { limit, side, cut })
    }

    /// The answer after middleware has seen the result: a text that it has changed is taken as it is,
    /// and a call that waits still does unless it was answered in another way. `limit` is for answers
    /// of the middleware's own.
    pub(super) fn join(result: ToolResult, bypass: Option<Bypass>, limit: usize) -> Self {
        let Some(Bypass { limit, side, cut }) = bypass else {
            return Self { result, limit, side: SideOutput::default() };
        };
        // A result without content cannot be told to be the one that was cut.
        let same = cut.zip(result.output()).is_some_and(|(cut, output)| output.content() == cut);
        let waits = result.error_kind() == Some(ErrorKind::RequiresApproval);
        let SideOutput { whole, spilled, suspension, wait } = side;
        let side = SideOutput {
            whole: whole.filter(|_| same),
            spilled,
            suspension: suspension.filter(|_| waits),
            wait: wait.filter(|_| waits),
        };
        Self { result, limit, side }
    }

    /// What was there before the text was cut, if it was.
    pub(crate) fn whole(&self) -> Option<&Whole> {
        self.side.whole.as_ref()
    }

    /// What has become of the call.
    pub(crate) fn into_answer(self) -> Answer {
        match self.side.suspension {
            Some(suspension) => Answer::Suspended(suspension),
            None => Answer::Done(self.result),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolcrib_tool::ToolError;

    use super::*;

    fn failed(partial: Option<&str>) -> ToolResult {
        let error = ToolError::execution("broken");
        let error = match partial {
            Some(text) => error.with_partial(text),
            None => error,
        };
        ToolResult::failure("1".into(), "t", error, Duration::ZERO)
    }

    /// Whether what was cut is kept where middleware puts the second result in place of the first.
    fn keeps_whole(cut: Option<&str>, now: Option<&str>) -> bool {
        let whole = Some(Whole::of(&"the secret and more".into()));
        let side = SideOutput { whole, ..SideOutput::default() };
        let (_, bypass) = Answered { result: failed(cut), limit: 9, side }.split();
        Answered::join(failed(now), Some(bypass), 9).whole().is_some()
    }

    #[test]
    fn what_was_cut_is_kept_only_with_the_text_it_was_cut_to() {
        assert!(keeps_whole(Some("the"), Some("the")));
        assert!(!keeps_whole(Some("the"), Some("***")));
        assert!(!keeps_whole(Some("the"), None));
        assert!(!keeps_whole(None, Some("***")));
        assert!(!keeps_whole(None, None));
    }
}

//! A call's answer on its way out.

use toolcrib_tool::{Content, ErrorKind, ToolResult};

use crate::output_budget::Whole;
use crate::suspension::{Answer, Suspension};

/// A call's answer, and what its batch needs to know of it.
pub(crate) struct Answered {
    pub(crate) result: ToolResult,
    /// What was there before the text was cut.
    pub(crate) whole: Option<Whole>,
    /// The call's own text budget, in characters.
    pub(crate) limit: usize,
    /// The call waits; the result only says so.
    pub(crate) suspension: Option<Box<Suspension>>,
}

/// What of an answer does not pass through middleware.
pub(super) struct Aside {
    /// What was there before the text was cut, and what it was cut to.
    whole: Option<(Whole, Vec<Content>)>,
    limit: usize,
    suspension: Option<Box<Suspension>>,
}

impl Answered {
    pub(super) fn apart(self) -> (ToolResult, Aside) {
        let Self { result, whole, limit, suspension } = self;
        let content = || result.output().map(|output| output.content().to_vec());
        let whole = whole.map(|whole| (whole, content().unwrap_or_default()));
        (result, Aside { whole, limit, suspension })
    }

    /// With what middleware has made of the result: a text it has changed is taken as it is, and a
    /// call that waits still does unless it was answered in another way. `limit` is for answers of
    /// the middleware's own.
    pub(super) fn together(result: ToolResult, aside: Option<Aside>, limit: usize) -> Self {
        let Some(Aside { whole, limit, suspension }) = aside else {
            return Self { result, whole: None, limit, suspension: None };
        };
        let same =
            |content: &[Content]| result.output().is_some_and(|output| output.content() == content);
        let whole = whole.filter(|(_, content)| same(content)).map(|(whole, _)| whole);
        let waits = result.error_kind() == Some(ErrorKind::RequiresApproval);
        Self { result, whole, limit, suspension: suspension.filter(|_| waits) }
    }

    /// What has become of the call.
    pub(crate) fn into_answer(self) -> Answer {
        match self.suspension {
            Some(suspension) => Answer::Suspended(suspension),
            None => Answer::Done(self.result),
        }
    }
}

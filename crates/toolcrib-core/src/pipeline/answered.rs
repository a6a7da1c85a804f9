//! A call's answer on its way out.

use toolcrib_tool::{Content, ErrorKind, ToolResult};

use crate::output_budget::Whole;
use crate::suspension::{Answer, Suspension};

/// A call's answer, and what its batch needs to know of it.
pub(crate) struct Answered {
    pub(crate) result: ToolResult,
    /// The call's own text budget, in characters.
    pub(crate) limit: usize,
    /// Behind a pointer, because few answers have any of it and each is handed from hand to hand.
    pub(crate) aside: Option<Box<Aside>>,
}

/// What few answers have.
#[derive(Default)]
pub(crate) struct Aside {
    /// What was there before the text was cut.
    pub(crate) whole: Option<Whole>,
    /// The call waits; the result only says so.
    pub(crate) suspension: Option<Box<Suspension>>,
}

impl Aside {
    #[inline]
    pub(crate) fn of(
        whole: Option<Whole>,
        suspension: Option<Box<Suspension>>,
    ) -> Option<Box<Self>> {
        if whole.is_none() && suspension.is_none() {
            return None;
        }
        Some(Box::new(Self { whole, suspension }))
    }
}

/// What of an answer does not pass through middleware.
pub(super) struct Apart {
    limit: usize,
    aside: Option<Box<Aside>>,
    /// What the text was cut to, if it was.
    cut: Option<Vec<Content>>,
}

impl Answered {
    pub(super) fn apart(self) -> (ToolResult, Apart) {
        let cut = self.whole().and(self.result.output()).map(|output| output.content().to_vec());
        let Self { result, limit, aside } = self;
        (result, Apart { limit, aside, cut })
    }

    /// With what middleware has made of the result: a text it has changed is taken as it is, and a
    /// call that waits still does unless it was answered in another way. `limit` is for answers of
    /// the middleware's own.
    pub(super) fn together(result: ToolResult, apart: Option<Apart>, limit: usize) -> Self {
        let Some(Apart { limit, aside, cut }) = apart else {
            return Self { result, limit, aside: None };
        };
        let Some(aside) = aside else { return Self { result, limit, aside: None } };
        // Where nothing of it was left, nothing tells whose the result is.
        let same = cut.zip(result.output()).is_some_and(|(cut, output)| output.content() == cut);
        let waits = result.error_kind() == Some(ErrorKind::RequiresApproval);
        let Aside { whole, suspension } = *aside;
        let aside = Aside::of(whole.filter(|_| same), suspension.filter(|_| waits));
        Self { result, limit, aside }
    }

    /// What was there before the text was cut, if it was.
    pub(crate) fn whole(&self) -> Option<&Whole> {
        self.aside.as_ref()?.whole.as_ref()
    }

    /// What has become of the call.
    pub(crate) fn into_answer(self) -> Answer {
        match self.aside.and_then(|aside| aside.suspension) {
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
        let whole = Whole::of(&"the secret and more".into());
        let aside = Aside::of(Some(whole), None);
        let (_, apart) = Answered { result: failed(cut), limit: 9, aside }.apart();
        Answered::together(failed(now), Some(apart), 9).whole().is_some()
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

//! Calls that are made again after a call within them was decided on: their bodies are gone, and a
//! second run of them does no harm.

use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_tool::{ToolError, ToolResult};

use crate::identity::fingerprint::Fingerprint;
use crate::suspension::{Frame, Grant, MadeCall, Within};

/// One of the calls that are made again.
#[derive(Debug, Clone)]
pub(crate) struct Repetition {
    grant: Arc<Grant>,
    /// Its place among the calls that led to the one that was decided on.
    frame: usize,
    /// Which of its finished calls it has asked for again.
    asked: Arc<Mutex<Vec<bool>>>,
}

/// What a call that is made again is to do about a call it makes.
pub(crate) enum Next {
    /// It has ended before: this was its answer.
    Finished(Box<ToolResult>),
    /// It is the one that was decided on.
    Decided(Arc<Grant>),
    /// It led to the one that was decided on, and is made again, too.
    Again(Repetition),
    /// It is a call like any other.
    New,
}

impl Repetition {
    /// The outermost of the calls that led to the one that was decided on.
    pub(crate) fn of(grant: Arc<Grant>) -> Self {
        Self { grant, frame: 0, asked: Arc::default() }
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    fn within(&self) -> Option<&Within> {
        self.grant.suspension().within()
    }

    fn frame(&self) -> Option<&Frame> {
        self.within()?.frames.get(self.frame)
    }

    /// Fails if the tool is not the one that was at work when the call came to wait.
    pub(crate) fn check_definition(&self, definition: Fingerprint) -> Result<(), ToolError> {
        if self.frame().is_some_and(|frame| frame.definition == definition) {
            return Ok(());
        }
        Err(ToolError::denied("the tool changed while the call waited")
            .with_hint("Make the call again."))
    }

    /// What to do about a call that this one makes.
    pub(crate) fn next(&self, made: &MadeCall) -> Next {
        let (Some(within), Some(frame)) = (self.within(), self.frame()) else { return Next::New };
        if within.frames.len() == self.frame + 1 && within.is_nested(made) {
            return Next::Decided(Arc::clone(&self.grant));
        }
        if within.is_frame(self.frame + 1, made) {
            let grant = Arc::clone(&self.grant);
            return Next::Again(Self { grant, frame: self.frame + 1, asked: Arc::default() });
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.resize(frame.finished.len(), false);
        let found = (0..frame.finished.len())
            .find(|&place| !asked[place] && frame.finished[place].made == *made);
        match found {
            Some(place) => {
                asked[place] = true;
                Next::Finished(Box::new(frame.finished[place].result.clone()))
            }
            None => Next::New,
        }
    }
}

//! Repeating calls after a nested call was decided on: their futures are gone, and a second run is
//! harmless.

use std::sync::{Arc, Mutex, PoisonError};

use toolcrib_tool::{ToolError, ToolResult};

use crate::identity::fingerprint::Fingerprint;
use crate::suspension::{Frame, Grant, MadeCall, Within};

/// A call that is made again.
#[derive(Debug, Clone)]
pub(crate) struct Repetition {
    grant: Arc<Grant>,
    /// Its index among the ancestors of the decided call.
    frame: usize,
    /// Which of its finished nested calls it has repeated.
    asked: Arc<Mutex<Vec<bool>>>,
}

/// What to do with a nested call of a repeated call.
pub(crate) enum Next {
    /// It has ended before, with this answer.
    Finished(Box<ToolResult>),
    /// It is the call that was decided on.
    Decided(Arc<Grant>),
    /// It is an ancestor of the decided call, and is repeated as well.
    Again(Repetition),
    /// It is a new call.
    New,
}

impl Repetition {
    /// The repetition of the root call.
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

    /// Fails if the tool changed since the call was suspended.
    pub(crate) fn check_definition(&self, definition: Fingerprint) -> Result<(), ToolError> {
        if self.frame().is_some_and(|frame| frame.definition == definition) {
            return Ok(());
        }
        Err(ToolError::denied("the tool changed while the call waited")
            .with_hint("Make the call again."))
    }

    /// What to do with a nested call.
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

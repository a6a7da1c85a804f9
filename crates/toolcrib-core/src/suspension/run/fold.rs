//! Folding a journal into a run record, and finding the entries that a journal lacks.

use super::journal::{FORMAT, JournalEntry, Seq};
use super::record::RunCall;
use super::{RunId, RunRecord};

impl RunRecord {
    /// The initial record from a journal's first entry.
    fn begin(id: &RunId, entry: JournalEntry) -> Result<Self, String> {
        match entry {
            JournalEntry::Started { format, .. } if format > FORMAT => Err(format!(
                "a newer toolcrib wrote it (format {format}, this program knows up to {FORMAT}): use that \
                 version"
            )),
            JournalEntry::Started { identity, created_at, .. } => {
                Ok(Self::new(id.clone(), &identity, created_at, Vec::new()).with_version(1))
            }
            JournalEntry::Imported(record) if record.id() == id => Ok(record.with_version(1)),
            _ => Err("its first entry does not begin it".to_owned()),
        }
    }

    /// Applies further entries to a record; `None` if there is none yet.
    pub(super) fn followed_by(
        before: Option<Self>,
        id: &RunId,
        seq: Seq,
        entry: JournalEntry,
    ) -> Result<Self, String> {
        let known = before.as_ref().map_or(0, Self::version);
        if seq != known + 1 {
            return Err(format!("entry {} is missing", known + 1));
        }
        let Some(mut record) = before else { return Self::begin(id, entry) };
        record.version = seq;
        let (call, slot) = match entry {
            JournalEntry::CallSuspended { call, suspension } => {
                (call, RunCall::Waiting(suspension))
            }
            JournalEntry::CallFinished { call, result } => (call, RunCall::Done(result)),
            JournalEntry::Ended { ending } => {
                record.ending.get_or_insert(ending);
                return Ok(record);
            }
            JournalEntry::Started { .. } | JournalEntry::Imported(_) => {
                return Err(format!("entry {seq} begins it again"));
            }
            JournalEntry::Step(_) => {
                return Err(format!("entry {seq} is a step of another kind of run"));
            }
        };
        let known = record.slots.len();
        match record.slots.get_mut(call) {
            None if call == known => record.slots.push(slot),
            Some(waits @ RunCall::Waiting(_)) => *waits = slot,
            Some(RunCall::Done(_)) => {
                return Err(format!("entry {seq} answers call {call}, which has its answer"));
            }
            None => return Err(format!("entry {seq} is about call {call}, which it has not")),
        }
        Ok(record)
    }

    /// The entries that a journal with the record `kept` lacks; `None` if it is empty.
    pub(super) fn lacking(&self, kept: Option<&Self>) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        if kept.is_none() {
            entries.push(JournalEntry::Started {
                format: FORMAT,
                identity: self.identity().to_owned(),
                created_at: self.created_at(),
            });
        }
        for (call, slot) in self.slots.iter().enumerate() {
            let known = kept.and_then(|kept| kept.slots.get(call));
            // The first answer of a call is final.
            if known == Some(slot) || matches!(known, Some(RunCall::Done(_))) {
                continue;
            }
            entries.push(match slot {
                RunCall::Waiting(one) => {
                    JournalEntry::CallSuspended { call, suspension: one.clone() }
                }
                RunCall::Done(result) => {
                    JournalEntry::CallFinished { call, result: result.clone() }
                }
            });
        }
        if let Some(ending) = self.ending
            && kept.is_none_or(|kept| kept.ending.is_none())
        {
            entries.push(JournalEntry::Ended { ending });
        }
        entries
    }
}

//! From a journal to the record of its run, and from a record to what its journal lacks.

use super::journal::{FORMAT, JournalEntry, Seq};
use super::record::RunCall;
use super::{RunId, RunRecord};

impl RunRecord {
    /// The record of a run as its journal's first entry begins it.
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

    /// Goes on with the record of the entries before. `None`: there were none.
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

    /// What a journal lacks that adds up to `kept`. `None`: it has no entries.
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
            // The first answer to a call is its last.
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

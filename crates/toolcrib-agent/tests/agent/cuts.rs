//! Answers that are cut at every byte, through the whole loop. The tests of the endpoint cut connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolcrib_agent::model::{AttemptError, ModelClient};
use toolcrib_agent::{AgentEvent, JournalEntry};
use toolcrib_testkit::model_server::Reply;
use toolcrib_tool::BoxFuture;
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, RequestHead, StreamDecoder, Wire};

use crate::fixture::{Counts, builder, transcript};

/// A model whose answers are streams as a provider sends them. Of the first answer only so many bytes arrive.
struct CutModel {
    wire: Wire,
    streams: Vec<Vec<u8>>,
    first: usize,
    /// Requests, and answers that arrived whole.
    asked: AtomicUsize,
    answered: AtomicUsize,
}

impl CutModel {
    fn answer(
        &self,
        settings: DecoderSettings,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<Answer, AttemptError> {
        let is_cut = self.asked.fetch_add(1, Ordering::SeqCst) == 0;
        let stream =
            &self.streams[self.answered.load(Ordering::SeqCst).min(self.streams.len() - 1)];
        let stream = if is_cut { &stream[..self.first] } else { &stream[..] };
        let mut decoder = StreamDecoder::new(self.wire, settings);
        let (mut found, mut began) = (Vec::new(), false);
        let failed = |error, began| {
            let mut failed = AttemptError::of_answer(&error);
            failed.began = began;
            failed
        };
        for piece in stream.chunks(97) {
            let pushed = decoder.push(piece, &mut found);
            began |= !found.is_empty();
            found.drain(..).for_each(&mut *events);
            pushed.map_err(|error| failed(error, began))?;
        }
        let answer = decoder.finish(&mut found);
        found.drain(..).for_each(&mut *events);
        let answer = answer.map_err(|error| failed(error, began))?;
        self.answered.fetch_add(1, Ordering::SeqCst);
        Ok(answer)
    }
}

impl ModelClient for CutModel {
    fn wire(&self) -> Wire {
        self.wire
    }

    fn head(&self) -> RequestHead {
        RequestHead::new("recorded", "recorded")
    }

    fn ask<'a>(
        &'a self,
        _: String,
        settings: DecoderSettings,
        events: &'a mut (dyn FnMut(ModelEvent) + Send),
    ) -> BoxFuture<'a, Result<Answer, AttemptError>> {
        Box::pin(async move { self.answer(settings, events) })
    }
}

/// Runs an agent whose first answer is cut after so many bytes; returns whether that answer was lost.
async fn run_cut(wire: Wire, streams: &[Vec<u8>], at: usize) -> bool {
    let counts = Arc::new(Counts::default());
    let (asked, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let model = CutModel { wire, streams: streams.to_vec(), first: at, asked, answered };
    // What a viewer shows: what was lost is taken back.
    let (shown, lost) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicUsize::new(0)));
    let (show, count) = (Arc::clone(&shown), Arc::clone(&lost));
    let begins = Arc::new(AtomicUsize::new(0));
    let agent = builder(&counts, Arc::new(model)).on_event(move |event| match event {
        AgentEvent::Model { event: ModelEvent::Text { delta }, .. } => {
            show.lock().unwrap().push_str(delta);
        }
        AgentEvent::Recorded { entry, .. } => match entry {
            JournalEntry::ModelRequested { .. } => {
                begins.store(show.lock().unwrap().len(), Ordering::SeqCst);
            }
            JournalEntry::ModelLost { .. } => {
                count.fetch_add(1, Ordering::SeqCst);
                show.lock().unwrap().truncate(begins.load(Ordering::SeqCst));
            }
            _ => {}
        },
        _ => {}
    });
    let agent = agent.build();
    let run = tokio::time::timeout(Duration::from_secs(30), agent.run("Write."));
    let report = run.await.unwrap_or_else(|_| panic!("{wire} cut at {at}: it hangs")).unwrap();
    assert_eq!(report.text(), "Done.", "{wire} cut at {at}");
    assert_eq!(counts.all()[1], 1, "{wire} cut at {at}: calls of a cut answer ran");
    assert_eq!(*shown.lock().unwrap(), "Wait, üDone.", "{wire} cut at {at}");
    let said = transcript(&report);
    let told = said.iter().filter(|line| line.contains("Wait, ü")).count();
    assert_eq!(told, 1, "{wire} cut at {at}: {said:?}");
    lost.load(Ordering::SeqCst) == 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_answer_that_is_cut_at_any_byte_runs_no_call_hangs_nothing_and_doubles_no_text() {
    let parts = Wire::ALL.iter().map(|&wire| {
        tokio::spawn(async move {
            let first = Reply::call("write", json!({"file": "notes.txt"}))
                .with_reasoning("I'll write.")
                .with_text("Wait, ü");
            let streams = [first.stream(wire, 1), Reply::text("Done.").stream(wire, 2)];
            let mut lost = 0;
            for at in 0..=streams[0].len() {
                lost += usize::from(run_cut(wire, &streams, at).await);
            }
            // The whole stream is no cut.
            assert!(lost > streams[0].len() / 2 && lost <= streams[0].len(), "{wire}: {lost}");
        })
    });
    for part in parts.collect::<Vec<_>>() {
        part.await.unwrap();
    }
}

//! Streams whose bytes are cut, between reads and for good.

use toolcrib_wire::model::{ModelErrorKind, Wire};

use super::{decode, recordings, settings};

#[test]
fn bytes_cut_anywhere_between_reads_give_the_same_events_and_answer() {
    for &wire in Wire::ALL {
        for (name, stream) in recordings(wire) {
            let whole = decode(wire, [&*stream], settings());
            for cut in 0..=stream.len() {
                let (head, tail) = stream.split_at(cut);
                assert_eq!(decode(wire, [head, tail], settings()), whole, "{name} cut at {cut}");
            }
            for size in 1..8 {
                assert_eq!(
                    decode(wire, stream.chunks(size), settings()),
                    whole,
                    "{name} by {size}"
                );
            }
        }
    }
}

/// An answer exists from the byte at which the provider has said that it is whole, and not before.
#[test]
fn a_stream_that_ends_at_any_byte_yields_no_call_of_an_unfinished_turn() {
    for &wire in Wire::ALL {
        for (name, stream) in recordings(wire) {
            let (all_events, whole) = decode(wire, [&*stream], settings());
            let mut complete_from = None;
            for end in 0..stream.len() {
                let (events, answer) = decode(wire, [&stream[..end]], settings());
                match (answer, &whole) {
                    (Ok(answer), Ok(whole)) => {
                        complete_from.get_or_insert(end);
                        assert_eq!(answer.items, whole.items, "{name} ends at {end}");
                        assert_eq!(answer.stop, whole.stop, "{name} ends at {end}");
                    }
                    (Ok(answer), Err(_)) => panic!("{name} ends at {end}: {answer:?}"),
                    (Err(error), whole) => {
                        assert_eq!(complete_from, None, "{name} ends at {end}");
                        assert!(all_events.starts_with(&events), "{name} ends at {end}");
                        let is_cut = error.kind == ModelErrorKind::Cut;
                        assert!(is_cut || whole.as_ref() == Err(&error), "{name}: {error}");
                    }
                }
            }
            assert_ne!(complete_from, Some(0), "{name}");
        }
    }
}

#[test]
fn a_cut_stream_says_where_it_was_cut() {
    let end = |bytes: &[u8]| decode(Wire::Chat, [bytes], settings()).1.unwrap_err().to_string();
    let cut = "the model's answer was cut off: the stream ended";
    assert_eq!(end(b""), format!("{cut} before any event"));
    assert_eq!(end(b"data: {\"choices\""), format!("{cut} in its first event"));
    assert_eq!(end(b"data: {\"choices\": []}\n\n"), format!("{cut} without a `finish_reason`"));
}

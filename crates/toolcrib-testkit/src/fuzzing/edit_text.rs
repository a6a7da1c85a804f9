//! Any bytes as a file, with a source and a target.

use toolcrib_edit::{Edit, Level, Refusal, apply};

/// Separates the file, the source and the target.
const CUT: &[u8] = b"\n%%%%\n";

/// Panics if an edit changes anything else, is made where the source does not occur, or is refused with positions or
/// texts that do not exist.
///
/// The input is a file, a source and a target, with `%%%%` on lines of their own between them. A target that begins
/// with `*` replaces all places.
pub fn edit_text(data: &[u8]) {
    let mut parts = split(data);
    let file = parts.remove(0);
    let [source, target] = [0, 1]
        .map(|at| String::from_utf8_lossy(parts.get(at).copied().unwrap_or_default()).into_owned());
    let all = target.starts_with('*');
    let edit = Edit::new(&source, &target).replace_all(all);
    match edit.find(file) {
        Ok(change) => {
            let now = change.apply(file);
            assert_ne!(now, file, "an edit that changes nothing is refused");
            assert!(change.diff(file).starts_with("@@ "));
            assert_eq!(apply(file, &[edit]).map(|applied| applied.bytes), Ok(now.clone()));
            assert_eq!(change.splices().len(), change.lines().len());
            assert!(all || change.splices().len() == 1);
            let (mut at, mut now_at) = (0, 0);
            for splice in change.splices() {
                let kept = splice.range.start.checked_sub(at).expect("splices are in order");
                assert_eq!(file[at..at + kept], now[now_at..now_at + kept]);
                let place = &file[splice.range.clone()];
                assert!(is_same(place, source.as_bytes(), change.level()));
                at = splice.range.end;
                now_at += kept + splice.text.len();
            }
            assert_eq!(file[at..], now[now_at..]);
        }
        Err(Refusal::Ambiguous(found)) => {
            assert!(found.count > 1 && !all);
            for context in found.places.iter().filter_map(|place| place.context.as_ref()) {
                let again = Edit::new(context, "something else").find(file);
                assert!(again.is_ok(), "a context is there once: {context:?} {again:?}");
            }
        }
        Err(Refusal::Missing(miss)) => {
            let stands = file.windows(source.len()).any(|window| window == source.as_bytes());
            assert!(!stands || file.contains(&b'\r'), "what stands there is found");
            if let Some(text) = miss.closest.as_ref().and_then(|closest| closest.text.as_ref()) {
                assert!(file.windows(text.len().max(1)).any(|window| window == text.as_bytes()));
            }
            assert!(!miss.to_string().is_empty());
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}

fn split(data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(CUT.len()).position(|window| window == CUT) {
        parts.push(&rest[..at]);
        rest = &rest[at + CUT.len()..];
    }
    parts.push(rest);
    parts
}

/// Whether two texts are equal at a level, or for a simpler comparison that ignores more.
fn is_same(place: &[u8], source: &[u8], level: Level) -> bool {
    // A byte order mark at its beginning is not part of a source.
    let source = source.strip_prefix("\u{feff}".as_bytes()).unwrap_or(source);
    let shown = |text: &[u8]| -> Vec<u8> {
        text.iter().copied().filter(|byte| !byte.is_ascii_whitespace() && *byte != 0x0b).collect()
    };
    match level {
        Level::Exact => place.ends_with(source),
        // Outside ASCII more than blanks may differ.
        Level::Folded if !place.is_ascii() || !source.is_ascii() => true,
        _ => shown(place) == shown(source),
    }
}

//! The fast searches find the same places as the complete ones.

use proptest::prelude::*;

use super::*;
use crate::lines::LineCounter;

/// Few words, so that much repeats and overlaps.
fn text(lines: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let word = proptest::sample::select(vec!["a", "b", "aa", "ab", "", " ", "“a”"]);
    let blanks = || proptest::sample::select(vec!["", " ", "\t", "  "]);
    let end = proptest::sample::select(vec!["\n", "\r\n", "\r"]);
    let line = (blanks(), word, blanks(), end).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}"));
    (proptest::collection::vec(line, lines), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.concat();
        if ended { text } else { text.trim_end_matches(['\n', '\r']).to_owned() }
    })
}

fn places(found: Option<Found>) -> Option<(usize, Vec<Range<usize>>)> {
    found.map(|found| (found.count, found.places))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn seed_search_and_automaton_agree(file in text(0..12), source in text(1..4)) {
        let Some(pattern) = Pattern::new(source.as_bytes()) else { return Ok(()) };
        let body = file.as_bytes();
        let Ok(quick) = seeds::search(body, &pattern, usize::MAX) else {
            return Err(TestCaseError::fail("too many hits in a small file"));
        };
        let level = quick.as_ref().map(|found| found.level);
        let mut slow = None;
        if pattern.pieces.len() > 1 {
            slow = bytes::ignoring_newlines(body, pattern.text, usize::MAX)
                .at(Level::Newlines, 0..0);
        }
        for level in [Level::TrailingBlanks, Level::Indentation] {
            let range = pattern.compared(level);
            let lines: Vec<&[u8]> = pattern.pieces[range].iter().map(|line| line.text).collect();
            slow = slow
                .or_else(|| windows::search(body, &lines, level, usize::MAX).at(level, 0..0));
        }
        prop_assert_eq!(level, slow.as_ref().map(|found| found.level));
        prop_assert_eq!(places(quick), places(slow));
    }

    #[test]
    fn folding_line_by_line_and_by_hashes_agree(file in text(0..12), source in text(1..4)) {
        let Some(pattern) = Pattern::new(source.as_bytes()) else { return Ok(()) };
        let quick = folded::search(&file, &pattern, usize::MAX);
        let lines: Vec<&[u8]> =
            pattern.pieces[pattern.core.clone()].iter().map(|line| line.text).collect();
        let slow = windows::search(file.as_bytes(), &lines, Level::Folded, usize::MAX)
            .at(Level::Folded, 0..0);
        prop_assert_eq!(places(quick), places(slow));
    }

    #[test]
    fn overlapping_places_are_found_either_way(
        file in "[ab]{0,40}", source in "[ab]{1,4}", keep in 0_usize..4,
    ) {
        let (file, source) = (file.as_bytes(), source.as_bytes());
        let quick = bytes::exact(file, source, keep);
        let slow = bytes::ignoring_newlines(file, source, keep);
        prop_assert_eq!((quick.count, quick.places), (slow.count, slow.places));
    }
}

#[test]
fn a_place_at_a_block_boundary_is_found_with_its_line() {
    let source = "here\nit is";
    for lines in bytes::BLOCK / 8 - 4..bytes::BLOCK / 8 + 4 {
        for pad in 0..8 {
            let before = "unlike.\n".repeat(lines) + &" ".repeat(pad);
            let file = before.clone() + source + "\nand more.\n";
            let found = exact(file.as_bytes(), source.as_bytes(), 2).unwrap();
            let place = before.len()..before.len() + source.len();
            assert_eq!((found.count, &found.places[..]), (1, &[place.clone()][..]));
            let mark = LineCounter::new(file.as_bytes()).mark(found.before, place.start);
            assert_eq!(mark.line, lines + 1);
            assert!(found.before.at >= place.start.saturating_sub(bytes::BLOCK));
        }
    }
}

#[test]
fn endless_repetition_is_counted_by_the_automaton() {
    let file = "a\n".repeat(30_000);
    let source = "a\n".repeat(100);
    let found = exact(file.as_bytes(), source.as_bytes(), 1).map(|found| found.count);
    assert_eq!(found, Some(29_901));

    let (file, source) = ("\ta \n".repeat(30_000), " a\n".repeat(100));
    let pattern = Pattern::new(source.as_bytes()).unwrap();
    assert!(seeds::search(file.as_bytes(), &pattern, 1).is_err());
    let found = drifted(file.as_bytes(), &pattern, 1).unwrap();
    assert_eq!((found.level, found.count), (Level::Indentation, 29_901));

    let (file, source) = ("a  b\n".repeat(30_000), "a b\n".repeat(100));
    let pattern = Pattern::new(source.as_bytes()).unwrap();
    let found = drifted(file.as_bytes(), &pattern, 1).unwrap();
    assert_eq!((found.level, found.count), (Level::Folded, 29_901));
}

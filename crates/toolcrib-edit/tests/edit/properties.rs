//! Properties for any file, source and target.

use proptest::prelude::*;
use toolcrib_edit::{Change, Edit, Level, Refusal, apply};

use crate::oracle;

/// Words of which some are equal at some level; few enough to meet often.
const WORDS: [&str; 14] = [
    "a",
    "b",
    "ab",
    "a b",
    "a  b",
    "“a”",
    "\"a\"",
    "a-b",
    "a–b",
    "é",
    "e\u{301}",
    "a\u{200b}",
    "",
    "}",
];
const BLANKS: [&str; 7] = ["", "", " ", "  ", "\t", "    ", "\u{c}"];
const ENDS: [&str; 4] = ["\n", "\n", "\r\n", "\r"];

fn line() -> impl Strategy<Value = String> {
    let pick = |from: &'static [&'static str]| proptest::sample::select(from);
    (pick(&BLANKS), pick(&WORDS), pick(&BLANKS), pick(&ENDS))
        .prop_map(|(before, word, after, end)| format!("{before}{word}{after}{end}"))
}

fn text(lines: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    (proptest::collection::vec(line(), lines), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.concat();
        if ended { text } else { text.trim_end_matches(['\n', '\r']).to_owned() }
    })
}

/// A file, and a source made from some of its lines with other blanks and line ends, or an arbitrary source.
fn file_and_source() -> impl Strategy<Value = (String, String)> {
    let drift = (0_u8..7, 0_usize..10, 1_usize..4);
    (text(0..10), text(1..4), drift).prop_map(|(file, other, (kind, first, count))| {
        let lines = oracle::lines(&file);
        let window = lines.iter().skip(first % lines.len()).take(count);
        let source: String = match kind {
            0 => other,
            1 => window.flat_map(|(text, end)| [text.clone(), end.clone()]).collect(),
            2 => window.map(|(text, _)| text.clone() + "\n").collect(),
            3 => window.map(|(text, _)| text.trim_end().to_owned() + "\n").collect(),
            4 => window.flat_map(|(text, _)| ["  ", text.trim(), "\n"]).collect(),
            5 => window.map(|(text, _)| oracle::key(text, Level::Folded) + "\n").collect(),
            // A part of one line.
            _ => {
                let line = oracle::key(&lines[first % lines.len()].0, Level::Folded);
                line.chars().skip(first % 2).take(count).collect()
            }
        };
        (file, source)
    })
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|char| char.is_whitespace() || char == '\u{200b}')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_place_agrees_with_a_naive_search((file, source) in file_and_source()) {
        if is_blank(&source) {
            return Ok(());
        }
        let found = Edit::new(&source, "something else").find(file.as_bytes());
        match (found, oracle::places(&file, &source)) {
            (Err(Refusal::Missing(_)), None) => {}
            (Err(Refusal::Ambiguous(found)), Some((level, places))) => {
                prop_assert_eq!((found.level, found.count), (level, places.len()));
                prop_assert!(places.len() > 1);
            }
            (Ok(change), Some((level, places))) => {
                prop_assert_eq!(change.level(), level);
                prop_assert_eq!(places.len(), 1);
                let range = &change.splices()[0].range;
                // Blank lines before the place may belong to the source.
                prop_assert!(range.start <= places[0]);
                prop_assert!(file[range.start..places[0]].trim().is_empty());
            }
            (found, expected) => prop_assert!(false, "{found:?} but {expected:?}"),
        }
    }

    #[test]
    fn replace_all_takes_every_place_without_overlaps((file, source) in file_and_source()) {
        if is_blank(&source) {
            return Ok(());
        }
        let found = Edit::new(&source, "\u{1}").replace_all(true).find(file.as_bytes());
        let expected = oracle::places(&file, &source);
        prop_assert_eq!(found.is_ok(), expected.is_some());
        if let (Ok(change), Some((level, places))) = (found, expected) {
            prop_assert_eq!(change.level(), level);
            let mut end = 0;
            for splice in change.splices() {
                prop_assert!(end <= splice.range.start);
                end = splice.range.end;
            }
            prop_assert!(change.splices().len() <= places.len());
            let now = change.apply(file.as_bytes());
            let marks = String::from_utf8(now).unwrap().matches('\u{1}').count();
            prop_assert_eq!(marks, change.splices().len());
        }
    }

    #[test]
    fn the_result_agrees_with_copying_line_by_line(
        (file, source) in file_and_source(),
        fresh in proptest::collection::vec("[x-z]{2,3}", 0..3),
        at in 0_usize..4,
        gone in 0_usize..3,
    ) {
        if is_blank(&source) || !source.ends_with('\n') {
            return Ok(());
        }
        // One run of lines is replaced by lines that occur nowhere else, so there is only one valid diff.
        let lines = oracle::lines(&source);
        let body = lines.len() - usize::from(lines.last().is_some_and(|line| line.0.is_empty()));
        let at = at.min(body);
        let gone = gone.min(body - at);
        let mut unique: Vec<&str> = lines[..body].iter().map(|line| line.0.as_str()).collect();
        unique.sort_unstable();
        unique.dedup();
        // Blank lines at the source's edges need not be in the file.
        if !(unique.len() == body && unique.iter().all(|line| !is_blank(line))) {
            return Ok(());
        }
        let kept = |range: std::ops::Range<usize>| -> String {
            lines[range].iter().flat_map(|(text, end)| [text.as_str(), end]).collect()
        };
        let new: String = fresh.iter().flat_map(|line| [line, "\n"]).collect();
        let target = kept(0..at) + &new + &kept(at + gone..lines.len());
        let Ok(change) = Edit::new(&source, &target).find(file.as_bytes()) else { return Ok(()) };
        if change.level() == Level::Exact {
            return Ok(());
        }
        let range = change.splices()[0].range.clone();
        let was = oracle::lines(&file[range.clone()]);
        let text = String::from_utf8(change.splices()[0].text.clone()).unwrap();
        let is = oracle::lines(&text);
        // The lines before and after are unchanged, except for the last one's line end.
        let first = was.iter().zip(&is).take_while(|(was, is)| was.0 == is.0).count();
        prop_assert!(first >= at.min(was.len()), "{was:?} {is:?}");
        let shown: Vec<&str> = is.iter().map(|line| line.0.trim()).collect();
        let before = was[..at.min(was.len())].iter();
        let after = was.get(at + gone..).unwrap_or_default().iter();
        let expected: Vec<&str> = before
            .map(|line| line.0.trim())
            .chain(fresh.iter().map(String::as_str))
            .chain(after.map(|line| line.0.trim()))
            .collect();
        let shows = |lines: &[&str]| -> Vec<String> {
            lines.iter().filter(|line| !line.is_empty()).map(|line| (*line).to_owned()).collect()
        };
        prop_assert_eq!(shows(&shown), shows(&expected), "{:?} {:?}", source, target);
        // No kind of line end that the file does not have.
        if file.contains(['\n', '\r']) {
            let ends: Vec<String> = oracle::lines(&file).into_iter().map(|line| line.1).collect();
            prop_assert!(is.iter().all(|line| ends.contains(&line.1) || line.1.is_empty()));
        }
    }

    #[test]
    fn outside_the_splices_no_byte_changes(
        (file, source) in file_and_source(),
        target in text(0..4),
        replace_all in any::<bool>(),
    ) {
        let edit = Edit::new(&source, &target).replace_all(replace_all);
        let Ok(change) = edit.find(file.as_bytes()) else { return Ok(()) };
        let now = change.apply(file.as_bytes());
        // Undoing splice by splice from the end restores the file.
        let mut back = now;
        let mut grown: isize = change.splices().iter().map(grows).sum();
        for splice in change.splices().iter().rev() {
            grown -= grows(splice);
            let start = splice.range.start.checked_add_signed(grown).unwrap();
            prop_assert_eq!(&back[start..start + splice.text.len()], splice.text.as_slice());
            let was = file.as_bytes()[splice.range.clone()].to_vec();
            back.splice(start..start + splice.text.len(), was);
        }
        prop_assert_eq!(back, file.as_bytes());
    }

    #[test]
    fn reversing_an_exact_edit_restores_the_file(
        file in text(1..10),
        first in 0_usize..60,
        len in 1_usize..20,
        target in "[xyz]{3}( [xyz]{1,3})?(\n[xyz]{1,3})?",
    ) {
        let file = file.replace('\r', "");
        let starts: Vec<usize> = (0..=file.len()).filter(|at| file.is_char_boundary(*at)).collect();
        let from = first % starts.len();
        let source = &file[starts[from]..starts[(from + len).min(starts.len() - 1)]];
        if let Ok(change) = Edit::new(source, &target).find(file.as_bytes()) {
            prop_assert_eq!(change.level(), Level::Exact);
            let now = change.apply(file.as_bytes());
            let back = Edit::new(&target, source).find(&now).unwrap();
            prop_assert_eq!(back.level(), Level::Exact);
            prop_assert_eq!(back.apply(&now), file.as_bytes());
        }
    }

    #[test]
    fn two_places_are_ambiguous_whichever_comes_first(
        one in text(1..4), drift in 0_usize..4, other_drift in 0_usize..4, source_drift in 0_usize..4,
    ) {
        let written = |how: usize| -> String {
            let lines = oracle::lines(one.trim_end());
            lines
                .iter()
                .flat_map(|(text, _)| match how {
                    0 => ["", text, "\n"],
                    1 => ["", text, "\r\n"],
                    2 => ["", text, "  \n"],
                    _ => ["\t", text, "\n"],
                })
                .collect()
        };
        let (a, b, source) = (written(drift), written(other_drift), written(source_drift));
        if is_blank(&source) {
            return Ok(());
        }
        let fate = |file: String| match Edit::new(&source, "something else").find(file.as_bytes()) {
            Ok(change) => (change.level(), 1),
            Err(Refusal::Ambiguous(found)) => (found.level, found.count),
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(fate(format!("{a}---\n{b}")), fate(format!("{b}---\n{a}")));
    }

    #[test]
    fn any_bytes_are_edited_or_refused(
        file in proptest::collection::vec(any::<u8>(), 0..80),
        (other, source) in file_and_source(),
        target in any::<String>(),
        replace_all in any::<bool>(),
        near_line in proptest::option::of(0_usize..9),
    ) {
        let around = [file.as_slice(), other.as_bytes(), &file].concat();
        for file in [file.as_slice(), &around, other.as_bytes()] {
            let edit = Edit::new(&source, &target).replace_all(replace_all);
            let edit = near_line.map_or(edit, |line| edit.near_line(line));
            match edit.find(file) {
                Ok(change) => {
                    prop_assert_ne!(change.apply(file), file);
                    prop_assert!(!change.diff(file).is_empty());
                }
                Err(refusal) => prop_assert!(!refusal.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn several_edits_are_made_in_order_or_not_at_all(
        (file, source) in file_and_source(), (_, second) in file_and_source(), target in text(0..3),
    ) {
        let edits = [Edit::new(&source, &target), Edit::new(&second, "something else")];
        let step = |file: &[u8], edit: &Edit<'_>| -> Option<Vec<u8>> {
            edit.find(file).ok().map(|change: Change| change.apply(file))
        };
        let expected =
            step(file.as_bytes(), &edits[0]).and_then(|file| step(&file, &edits[1]));
        prop_assert_eq!(apply(file.as_bytes(), &edits).ok().map(|applied| applied.bytes), expected);
    }

    #[test]
    fn a_near_line_refers_to_the_file_before_the_first_edit(
        lines in 2_usize..9, grown in 0_usize..9, to in 0_usize..4, seen in 0_usize..9,
    ) {
        let (grown, seen) = (grown % lines, seen % lines);
        let file: String = (0..lines).flat_map(|at| [format!("u{at}\n"), "same\n".into()]).collect();
        let longer = "new\n".repeat(to);
        let source = format!("u{grown}\n");
        let edits = [
            Edit::new(&source, &longer),
            Edit::new("same", "this one").near_line(2 * seen + 2),
        ];
        let expected: String = (0..lines)
            .flat_map(|at| {
                let first = if at == grown { longer.clone() } else { format!("u{at}\n") };
                [first, if at == seen { "this one\n".into() } else { "same\n".into() }]
            })
            .collect();
        let applied = apply(file.as_bytes(), &edits).unwrap();
        prop_assert_eq!(String::from_utf8(applied.bytes).unwrap(), expected);
    }
}

fn grows(splice: &toolcrib_edit::Splice) -> isize {
    splice.text.len().cast_signed() - splice.range.len().cast_signed()
}

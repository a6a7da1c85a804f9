//! Runs the corpus, compares results byte by byte, and compares them with simpler schemes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolcrib_edit::{Edit, LineRange, NoMatch, Refusal};

use crate::case::{self, Case, Outcome};
use crate::plain;

/// The corpus must have at least this many cases.
const FEWEST: usize = 250;

fn edit(case: &Case) -> Edit<'_> {
    let edit = Edit::new(&case.source, &case.target).replace_all(case.replace_all);
    case.near_line.map_or(edit, |line| edit.near_line(line))
}

#[test]
fn every_case_gives_its_expected_result_or_refusal() {
    let cases = case::all();
    assert!(cases.len() >= FEWEST, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let found = edit(case).find(&case.file);
        let expected = match &case.outcome {
            Outcome::Becomes { level, bytes } => {
                format!("{level}: {}", String::from_utf8_lossy(bytes).escape_debug())
            }
            Outcome::Refused { why } => why.clone(),
        };
        let got = match &found {
            Ok(change) => {
                let bytes = change.apply(&case.file);
                format!("{}: {}", change.level(), String::from_utf8_lossy(&bytes).escape_debug())
            }
            Err(refusal) => said(refusal, &expected),
        };
        if got != expected {
            let Case { category, name, .. } = case;
            let _ = writeln!(wrong, "{category}: {name}\n  wanted {expected}\n  got    {got}");
            if let Err(refusal) = &found {
                let _ = writeln!(wrong, "  {refusal}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A refusal in the corpus's notation, with as many details as the case contains.
fn said(refusal: &Refusal, expected: &str) -> String {
    let range = |lines: &LineRange| format!("{}-{}", lines.first, lines.last);
    let detail = |no_match: &NoMatch, asked: &str| match asked.split_once('=') {
        Some(("closest", _)) => {
            let closest = no_match.closest.as_ref();
            format!("closest={}", closest.map_or("none".to_owned(), |found| range(&found.lines)))
        }
        Some(("already", _)) => {
            format!("already={}", no_match.already.as_ref().map_or("none".to_owned(), range))
        }
        _ => no_match.causes.iter().map(|cause| cause.as_str()).collect::<Vec<_>>().join("+"),
    };
    match refusal {
        Refusal::Ambiguous(found) => format!("ambiguous {} {}", found.level, found.count),
        Refusal::Missing(no_match) => match expected.split_once(' ') {
            Some((_, asked)) => format!("missing {}", detail(no_match, asked)),
            None => "missing".to_owned(),
        },
        other => other.as_str().to_owned(),
    }
}

/// The result of a scheme for a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SchemeResult {
    Right,
    WrongPlace,
    WrongBytes,
    WronglyRefused,
}

fn fate(case: &Case, got: Option<&[u8]>) -> SchemeResult {
    match (&case.outcome, got) {
        (Outcome::Refused { .. }, None) => SchemeResult::Right,
        // If nothing should be changed, every change is wrong, unless it changed nothing.
        (Outcome::Refused { .. }, Some(got)) if got == case.file => SchemeResult::Right,
        (Outcome::Refused { .. }, Some(_)) => SchemeResult::WrongPlace,
        (Outcome::Becomes { .. }, None) => SchemeResult::WronglyRefused,
        (Outcome::Becomes { bytes, .. }, Some(got)) if bytes == got => SchemeResult::Right,
        (Outcome::Becomes { bytes, .. }, Some(got)) => {
            let (wanted, written) = (changed(&case.file, bytes), changed(&case.file, got));
            let apart = written.1 < wanted.0 || wanted.1 < written.0;
            if apart { SchemeResult::WrongPlace } else { SchemeResult::WrongBytes }
        }
    }
}

/// The first and the last byte of the file that changed.
fn changed(file: &[u8], now: &[u8]) -> (usize, usize) {
    let first = file.iter().zip(now).take_while(|(was, is)| was == is).count();
    let last = file.iter().rev().zip(now.iter().rev()).take_while(|(was, is)| was == is).count();
    (first, file.len().saturating_sub(last).max(first))
}

/// `cargo test -p toolcrib-edit --test edit plainer -- --nocapture` prints the table.
#[test]
fn simpler_schemes_give_worse_results() {
    type Scheme = (&'static str, fn(&Case) -> Option<Vec<u8>>);
    let schemes: [Scheme; 3] = [
        ("toolcrib", |case| Some(edit(case).find(&case.file).ok()?.apply(&case.file))),
        ("four plain levels", plain::four_levels),
        ("exact only", plain::exact_only),
    ];
    let cases = case::all();
    println!("| scheme | right | wrong place | wrong bytes | wrongly refused | of |");
    println!("|---|---:|---:|---:|---:|---:|");
    let mut right = Vec::new();
    for (name, scheme) in schemes {
        let mut fates: BTreeMap<SchemeResult, usize> = BTreeMap::new();
        for case in &cases {
            *fates.entry(fate(case, scheme(case).as_deref())).or_default() += 1;
        }
        let count = |fate| fates.get(&fate).copied().unwrap_or(0);
        let columns = [
            SchemeResult::Right,
            SchemeResult::WrongPlace,
            SchemeResult::WrongBytes,
            SchemeResult::WronglyRefused,
        ]
        .map(|fate| count(fate).to_string());
        println!("| {name} | {} | {} |", columns.join(" | "), cases.len());
        right.push(count(SchemeResult::Right));
    }
    assert_eq!(right[0], cases.len());
    assert!(right[0] > right[1] && right[1] > right[2], "{right:?}");
}

/// If a refusal offers a corrected source, that source is found.
#[test]
fn a_source_offered_by_a_refusal_occurs_once() {
    let (mut contexts, mut texts) = (0, 0);
    for case in case::all() {
        let again = |source: &str| Edit::new(source, "something else").find(&case.file);
        match edit(&case).find(&case.file) {
            Err(Refusal::Ambiguous(found)) => {
                for place in found.places.iter().filter(|place| place.context.is_some()) {
                    let change = again(place.context.as_ref().unwrap()).unwrap();
                    let lines = change.lines()[0];
                    assert!(
                        lines.first <= place.lines.first && place.lines.last <= lines.last,
                        "{}: {}",
                        case.category,
                        case.name
                    );
                    contexts += 1;
                }
            }
            Err(Refusal::Missing(no_match)) => {
                if let Some(text) = no_match.closest.and_then(|closest| closest.text) {
                    let found = again(&text);
                    let is_there = matches!(found, Ok(_) | Err(Refusal::Ambiguous(_)));
                    assert!(is_there, "{}: {}: {text:?}", case.category, case.name);
                    texts += 1;
                }
            }
            _ => {}
        }
    }
    assert!(contexts > 20 && texts > 20, "{contexts} contexts, {texts} texts");
}

#[test]
fn every_diff_shows_the_change() {
    for case in case::all() {
        if let Ok(change) = edit(&case).find(&case.file) {
            let diff = change.diff(&case.file);
            assert!(diff.starts_with("@@ "), "{}: {}: {diff}", case.category, case.name);
            let marked = diff.lines().any(|line| line.starts_with(['-', '+']));
            assert!(marked, "{}: {}: {diff}", case.category, case.name);
        }
    }
}

/// A refusal that names a mistake does not say beside it that the text is nowhere.
#[test]
fn a_refusal_that_names_a_cause_does_not_say_that_nothing_is_similar() {
    let said = |file: &str, source: &str, target: &str| {
        Edit::new(source, target).find(file.as_bytes()).unwrap_err().to_string()
    };
    let mut named = 0;
    for case in case::all() {
        if let Err(Refusal::Missing(no_match)) = edit(&case).find(&case.file)
            && !no_match.causes.is_empty()
        {
            let text = no_match.to_string();
            assert!(!text.contains("Nothing in the file"), "{}: {text}", case.name);
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
    let fenced = said("x\nalpha = beta\ny\n", "```toml\nalpha = beta\n```", "z");
    assert!(fenced.contains("code fence") && !fenced.contains("Nothing"), "{fenced}");
    let made = said("limit_of_calls = 5\n", "zz", "limit_of_calls = 5");
    assert!(made.contains("already at line 1") && !made.contains("Nothing"), "{made}");
    assert!(said("alpha\n", "zzz_qqq_www()", "x").contains("Nothing in the file is similar"));
}

/// The lines are shown as they are in the file, with a text that can be sent again.
#[test]
fn an_edit_whose_nesting_differs_is_refused_with_the_lines_of_the_file() {
    let file = "if a:\n    b()\n    c()\n";
    let refusal = Edit::new("if a:\n  b()\nc()", "x").find(file.as_bytes()).unwrap_err();
    let Refusal::Missing(no_match) = &refusal else { panic!("{refusal}") };
    let closest = no_match.closest.as_ref().unwrap();
    assert_eq!(closest.text.as_deref(), Some(file.trim_end()));
    assert!(closest.diff.contains("-     3  ····c()"), "{}", closest.diff);
    let text = refusal.to_string();
    assert!(text.contains("nested otherwise") && text.contains("send exactly this"), "{text}");
    let again = closest.text.clone().unwrap();
    assert!(Edit::new(&again, "x").find(file.as_bytes()).is_ok());
}

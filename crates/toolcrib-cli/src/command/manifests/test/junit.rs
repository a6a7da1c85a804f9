//! Writes `JUnit` XML for build servers: one suite per file, one case per test.

use std::fmt::Write as _;

use toolcrib::manifest_tests::{TestOutcome, TestReport};

use super::report::Report;

/// The whole document.
pub(super) fn document(report: &Report) -> String {
    let (_, failed, skipped) = report.counts();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        xml,
        "<testsuites name=\"toolcrib\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" \
         skipped=\"{skipped}\" time=\"{:.3}\">",
        report.tests.len(),
        report.duration.as_secs_f64()
    );
    for tests in report.tests.chunk_by(|a, b| a.origin.file == b.origin.file) {
        suite(tests, &mut xml);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(tests: &[TestReport], xml: &mut String) {
    let Some(first) = tests.first() else { return };
    let failed = tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Failed(_)));
    let skipped = tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Skipped(_)));
    let time: f64 = tests.iter().map(|test| test.duration.as_secs_f64()).sum();
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" \
         time=\"{time:.3}\">",
        escaped(&first.origin.file),
        tests.len(),
        failed.count(),
        skipped.count(),
    );
    for test in tests {
        case(test, xml);
    }
    xml.push_str("  </testsuite>\n");
}

fn case(test: &TestReport, xml: &mut String) {
    let _ = write!(
        xml,
        "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{}\" time=\"{:.3}\"",
        escaped(&test.tool),
        escaped(&test.name),
        escaped(&test.origin.file),
        test.origin.line,
        test.duration.as_secs_f64()
    );
    match &test.outcome {
        TestOutcome::Skipped(reason) => {
            let _ = writeln!(
                xml,
                ">\n      <skipped message=\"{}\"/>\n    </testcase>",
                escaped(reason)
            );
        }
        TestOutcome::Failed(failures) => {
            xml.push_str(">\n");
            // A single element, since readers of these reports show only the first.
            let what: Vec<&str> = failures.iter().map(|failure| failure.what).collect();
            let told: Vec<String> = failures
                .iter()
                .map(|failure| {
                    let (what, expected, got) = (failure.what, &failure.expected, &failure.got);
                    format!("{what}\nexpected:\n{expected}\ngot:\n{got}\n")
                })
                .collect();
            let _ = writeln!(
                xml,
                "      <failure message=\"{} does not hold\" type=\"expectation\">{}</failure>\n    </testcase>",
                escaped(&what.join(", ")),
                escaped(&told.join("\n"))
            );
        }
        _ => xml.push_str("/>\n"),
    }
}

/// Escapes text for XML, also in attributes; characters that XML cannot contain are replaced.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push_str("&#9;"),
            '\r' => xml.push_str("&#13;"),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            c if c.is_control() && u32::from(c) < 0x20 => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_except_characters_invalid_in_xml() {
        let text = "a<b>&\"c'\n\t\r\u{1b}[0m\u{fffe}ä🦀";
        let xml = format!("<t a=\"{0}\">{0}</t>", escaped(text));
        let document = roxmltree::Document::parse(&xml).unwrap();
        let read = document.root_element();
        let expected = text.replace(['\u{1b}', '\u{fffe}'], "\u{fffd}");
        assert_eq!((read.attribute("a"), read.text()), (Some(&*expected), Some(&*expected)));
    }
}

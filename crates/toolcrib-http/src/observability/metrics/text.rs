//! The Prometheus text format: metric families with samples and escaped labels.

use std::fmt::{Display, Write as _};

/// The type of a metric family.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Summary,
    Histogram,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

/// A page of metrics that is being written.
#[derive(Debug, Default)]
pub(super) struct Text(String);

/// One metric family; its samples are written together.
pub(super) struct Family<'t> {
    text: &'t mut String,
    name: &'static str,
}

impl Text {
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
        Family { text: &mut self.0, name }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// A sample of a summary or histogram, whose name has a suffix.
    pub(super) fn part(&mut self, rest: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{rest}", self.name);
        for (position, (label, text)) in labels.iter().enumerate() {
            let before = if position == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_any_text() {
        let mut text = Text::default();
        let mut family = text.family("calls_total", Kind::Counter, "Calls.");
        family.sample(&[("tool", "a\"b\\c\nd"), ("outcome", "ok")], 3);
        family.sample(&[], 0.5);
        assert_eq!(
            text.finish(),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\n\
             calls_total{tool=\"a\\\"b\\\\c\\nd\",outcome=\"ok\"} 3\ncalls_total 0.5\n"
        );
    }
}

//! Limits: time, output, memory, concurrency and rate.

use std::time::Duration;

use toolcrib_tool::{RateLimit, ToolDefinitionBuilder};

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::Node;
use crate::fields::Fields;
use crate::units::{ByteSize, HumanDuration};

/// The default time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The default time limit of a request.
const HTTP_TIMEOUT: Duration = Duration::from_secs(20);
/// The default time for which a call waits for its client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(600);
/// The default for how many bytes of each output stream are kept.
const CAPTURE_BYTES: usize = 64 * 1024;
/// The maximum: the process runner keeps no more.
const CAPTURE_MAX: u64 = 1024 * 1024;
/// The default for the size of a response.
const TRANSFER_BYTES: usize = 5 * 1024 * 1024;
/// The maximum: a response is read completely into memory.
const TRANSFER_MAX: u64 = 64 * 1024 * 1024;
/// The minimum memory limit: no program starts with less.
const MEMORY_MIN: u64 = 16 << 20;
/// The maximum memory limit.
const MEMORY_MAX: u64 = 1 << 40;
/// The maximum of `concurrent`.
const CONCURRENT_MAX: i64 = 10_000;

/// The valid limits of a tool, or of a file's `defaults`.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::manifest) struct Limits<'n> {
    timeout: Option<(HumanDuration, &'n Node)>,
    output: Option<usize>,
    transfer: Option<usize>,
    memory: Option<u64>,
    concurrent: Option<usize>,
    rate: Option<RateLimit>,
}

impl<'n> Limits<'n> {
    /// Reads the limits in `fields`.
    pub(in crate::manifest) fn read(fields: &Fields<'n>, findings: &mut Findings<'_>) -> Self {
        let timeout = fields.node("timeout").and_then(|node| {
            let timeout: HumanDuration = node.as_str()?.parse().ok()?;
            Some((timeout, node))
        });
        Self {
            timeout,
            output: fields.node("output").map(|node| capture_bytes(node, findings)),
            transfer: fields.node("transfer").map(|node| transfer_bytes(node, findings)),
            memory: fields.node("memory").and_then(|node| memory(node, findings)),
            concurrent: fields.integer("concurrent").and_then(|number| {
                let in_range = (1..=CONCURRENT_MAX).contains(&number);
                if let (false, Some(node)) = (in_range, fields.node("concurrent")) {
                    let message = "`concurrent` is 1 to 10000";
                    findings.add(
                        Diagnostic::error("out-of-range", &node.span, message)
                            .help("remove the key to leave them unlimited"),
                    );
                }
                usize::try_from(number).ok().filter(|_| in_range)
            }),
            rate: fields.text("rate").and_then(|text| text.parse().ok()),
        }
    }

    /// The limits of a tool, with those of the file as defaults.
    pub(in crate::manifest) fn or(self, shared: Self) -> Self {
        Self {
            timeout: self.timeout.or(shared.timeout),
            output: self.output.or(shared.output),
            transfer: self.transfer.or(shared.transfer),
            memory: self.memory.or(shared.memory),
            concurrent: self.concurrent.or(shared.concurrent),
            rate: self.rate.or(shared.rate),
        }
    }

    /// The time limit of a command, which always has one.
    pub(in crate::manifest) fn of_command(self, findings: &mut Findings<'_>) -> Duration {
        self.always("a command", TIMEOUT, findings)
    }

    /// The time limit of a request, which always has one.
    pub(in crate::manifest) fn of_request(self, findings: &mut Findings<'_>) -> Duration {
        self.always("a request", HTTP_TIMEOUT, findings)
    }

    fn always(self, what: &str, default: Duration, findings: &mut Findings<'_>) -> Duration {
        let Some((timeout, node)) = self.timeout else { return default };
        timeout.0.filter(|timeout| !timeout.is_zero()).unwrap_or_else(|| {
            let message = format!("the time limit of {what} must be greater than zero");
            let diagnostic = Diagnostic::error("out-of-range", &node.span, message);
            findings.add(diagnostic.help("write the longest time a call may take: 10m"));
            default
        })
    }

    /// How long a call waits for its client; `None` means without limit.
    pub(in crate::manifest) fn of_client(self, findings: &mut Findings<'_>) -> Option<Duration> {
        let Some((timeout, node)) = self.timeout else { return Some(CLIENT_TIMEOUT) };
        if timeout.0.is_some_and(|timeout| timeout.is_zero()) {
            let message = "the time limit of a client tool must be greater than zero";
            let diagnostic = Diagnostic::error("out-of-range", &node.span, message);
            findings.add(diagnostic.help("write how long a call waits for it, or none: 5m"));
        }
        timeout.0.filter(|timeout| !timeout.is_zero())
    }

    /// The time limit of an upstream's calls, if it has one.
    pub(in crate::manifest) fn of_upstream(self, findings: &mut Findings<'_>) -> Option<Duration> {
        let (timeout, node) = self.timeout?;
        let timeout = timeout.0.filter(|timeout| !timeout.is_zero());
        if timeout.is_none() {
            let message = "the time limit of an upstream's calls must be greater than zero";
            let diagnostic = Diagnostic::error("out-of-range", &node.span, message);
            findings.add(diagnostic.help("write the longest time a call may take: 10m"));
        }
        timeout
    }

    /// The concurrency limit and the rate limit.
    pub(in crate::manifest) fn numbers(self) -> (Option<usize>, Option<RateLimit>) {
        (self.concurrent, self.rate)
    }

    /// The memory limit of each process, in bytes; `None` means the profile's limit.
    pub(in crate::manifest) fn memory(self) -> Option<u64> {
        self.memory
    }

    /// The limits of a worker, which by default gets one call at a time.
    pub(in crate::manifest) fn or_one_at_once(self) -> Self {
        Self { concurrent: self.concurrent.or(Some(1)), ..self }
    }

    /// Adds the concurrency and rate limits to a definition.
    pub(in crate::manifest) fn apply(
        self,
        mut builder: ToolDefinitionBuilder,
    ) -> ToolDefinitionBuilder {
        if let Some(concurrent) = self.concurrent {
            builder = builder.max_concurrent(concurrent);
        }
        if let Some(rate) = self.rate {
            builder = builder.rate(rate);
        }
        builder
    }

    /// How many bytes of each output stream, or of a response's result, are kept.
    pub(in crate::manifest) fn capture_bytes(self) -> usize {
        self.output.unwrap_or(CAPTURE_BYTES)
    }

    /// The maximum size of a response, in bytes.
    pub(in crate::manifest) fn transfer_bytes(self) -> usize {
        self.transfer.unwrap_or(TRANSFER_BYTES)
    }
}

/// A suggestion for a size out of range: the exceeded bound.
fn within(node: &Node, least: u64, most: u64) -> String {
    let size: Option<ByteSize> = node.as_str().and_then(|text| text.parse().ok());
    if size.is_some_and(|size| size.0 < least) {
        format!("write at least `{}`", ByteSize(least))
    } else {
        format!("write at most `{}`", ByteSize(most))
    }
}

fn capture_bytes(node: &Node, findings: &mut Findings<'_>) -> usize {
    let size: Option<ByteSize> = node.as_str().and_then(|text| text.parse().ok());
    let size = size.map(|size| size.0).filter(|size| (1..=CAPTURE_MAX).contains(size));
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or_else(|| {
        let message = "`output` is 1B to 1MiB for each stream";
        let help = within(node, 1, CAPTURE_MAX);
        findings.add(Diagnostic::error("out-of-range", &node.span, message).help(help));
        CAPTURE_BYTES
    })
}

fn memory(node: &Node, findings: &mut Findings<'_>) -> Option<u64> {
    let size: ByteSize = node.as_str()?.parse().ok()?;
    let in_range = (MEMORY_MIN..=MEMORY_MAX).contains(&size.0);
    if !in_range {
        let message = "`memory` is 16MiB to 1024GiB";
        let help = within(node, MEMORY_MIN, MEMORY_MAX);
        findings.add(Diagnostic::error("out-of-range", &node.span, message).help(help));
    }
    in_range.then_some(size.0)
}

fn transfer_bytes(node: &Node, findings: &mut Findings<'_>) -> usize {
    let size: Option<ByteSize> = node.as_str().and_then(|text| text.parse().ok());
    let size = size.map(|size| size.0).filter(|size| (1..=TRANSFER_MAX).contains(size));
    size.and_then(|size| usize::try_from(size).ok()).unwrap_or_else(|| {
        let message = "`transfer` is 1B to 64MiB";
        let help = within(node, 1, TRANSFER_MAX);
        findings.add(Diagnostic::error("out-of-range", &node.span, message).help(help));
        TRANSFER_BYTES
    })
}

//! Policies of the executor: caching, deduplication, retries and approval.

use std::time::Duration;

use toolcrib_tool::{
    Annotations, Approval, CachePolicy, Dedupe, Resources, RetryPolicy, TaskMode,
    ToolDefinitionBuilder,
};

use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Entry, Node};
use crate::fields::Fields;
use crate::manifest::keys;
use crate::units::HumanDuration;

/// The maximum number of retries.
const RETRIES_MAX: i64 = 10;
/// The maximum backoff: the executor never waits longer.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The valid policies of a tool, or of a file's `defaults`.
#[derive(Debug, Clone, Default)]
pub(in crate::manifest) struct Policies {
    cache: Option<CachePolicy>,
    dedupe: Option<Dedupe>,
    retry: Option<RetryPolicy>,
    resources: Option<Resources>,
    approval: Option<Approval>,
    task: Option<TaskMode>,
}

impl Policies {
    /// Reads the policies in `fields`.
    pub(in crate::manifest) fn read(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Self {
        let mut part = |key: &str, table| {
            fields.node(key).and_then(|node| Fields::read(node, table, findings))
        };
        let (cache, retry) = (part("cache", &keys::CACHE), part("retry", &keys::RETRY));
        let resources = part("resources", &keys::RESOURCES);
        Self {
            cache: cache.map(|fields| cache_policy(&fields, findings)),
            dedupe: chosen(fields, "dedupe", &DEDUPES, Dedupe::as_str),
            retry: retry.and_then(|fields| retry_policy(&fields, findings)),
            resources: resources.map(|fields| touched(&fields, findings)),
            approval: chosen(fields, "approval", &APPROVALS, Approval::as_str),
            task: chosen(fields, "task", &TASK_MODES, TaskMode::as_str),
        }
    }

    /// Reports policies of a tool that contradict its annotations. Those of the file apply only to
    /// tools that may have them.
    pub(in crate::manifest) fn check_repeats(
        &self,
        fields: &Fields<'_>,
        annotations: Annotations,
        findings: &mut Findings<'_>,
    ) {
        if let (Some(_), Some(entry)) = (self.cache, fields.entry("cache")) {
            uncacheable(fields, entry, annotations, findings);
        }
        if let (Some(Dedupe::Session), Some(entry)) = (self.dedupe, fields.entry("dedupe")) {
            never_repeated(fields, entry, annotations, findings);
        }
        if let (Some(_), Some(entry)) = (self.retry, fields.entry("retry"))
            && !annotations.idempotent
        {
            let message = "only idempotent tools can be retried: a failed call may have taken \
             effect";
            let diagnostic = Diagnostic::error("unrepeatable-tool", &entry.key_span, message).help(
                "if calling twice is like calling once, write `annotations: {idempotent: true}`; \
                 otherwise remove `retry`",
            );
            findings.add(beside_annotations(diagnostic, fields));
        }
        if let Some(writes) = fields.node("resources").and_then(|node| node.entry("writes"))
            && annotations.read_only
            && !writes.node.items().is_empty()
        {
            let message = "a read-only tool writes nothing";
            let diagnostic = Diagnostic::error("read-only-writes", &writes.key_span, message)
                .help("name what it depends on under `reads`, or remove `read_only: true`");
            findings.add(beside_annotations(diagnostic, fields));
        }
    }

    /// Reports an approval policy that never applies.
    pub(in crate::manifest) fn check_approval(
        &self,
        fields: &Fields<'_>,
        annotations: Annotations,
        findings: &mut Findings<'_>,
    ) {
        if let (Some(Approval::Destructive), Some(node)) = (self.approval, fields.node("approval"))
            && (annotations.read_only || !annotations.destructive)
        {
            let message = "the tool is not destructive, so nobody is ever asked";
            let diagnostic = Diagnostic::warning("idle-approval", &node.span, message)
                .help("write `approval: always` if every call needs approval");
            findings.add(beside_annotations(diagnostic, fields));
        }
    }

    /// Adds a command's policies to its definition; `shared` are those of the file.
    pub(in crate::manifest) fn apply(
        self,
        shared: &Self,
        annotations: Annotations,
        mut builder: ToolDefinitionBuilder,
    ) -> ToolDefinitionBuilder {
        let cacheable = annotations.read_only && annotations.idempotent;
        // Contradicting policies of the tool were refused; contradicting ones of the file do not
        // apply.
        if let Some(cache) = self.cache.or(shared.cache).filter(|_| cacheable) {
            builder = builder.cache(cache);
        }
        if let Some(retry) = self.retry.or(shared.retry).filter(|_| annotations.idempotent) {
            builder = builder.retry(retry);
        }
        let holds = |dedupe: &Dedupe| cacheable || *dedupe != Dedupe::Session;
        if let Some(dedupe) = self.dedupe.or(shared.dedupe).filter(holds) {
            builder = builder.dedupe(dedupe);
        }
        let shared_resources = || shared.resources.as_ref().map(|named| held(named, annotations));
        if let Some(resources) = self.resources.clone().or_else(shared_resources) {
            builder = builder.resources(resources);
        }
        self.apply_to_any(shared, builder)
    }

    /// The approval policy of an MCP server or one of its tools, or else of the file. Other keys of these
    /// tables, such as `resources`, have a meaning of their own there.
    pub(in crate::manifest) fn upstream_approval(fields: &Fields<'_>, shared: &Self) -> Approval {
        let own = chosen(fields, "approval", &APPROVALS, Approval::as_str);
        own.or(shared.approval).unwrap_or_default()
    }

    /// Adds the policies that also apply to client tools to a definition.
    pub(in crate::manifest) fn apply_to_any(
        &self,
        shared: &Self,
        mut builder: ToolDefinitionBuilder,
    ) -> ToolDefinitionBuilder {
        if let Some(approval) = self.approval.or(shared.approval) {
            builder = builder.approval(approval);
        }
        if let Some(task) = self.task.or(shared.task) {
            builder = builder.task(task);
        }
        builder
    }
}

/// The file's resources for this tool: a read-only tool writes none.
fn held(shared: &Resources, annotations: Annotations) -> Resources {
    if annotations.read_only {
        shared.read().iter().fold(Resources::new(), Resources::reads)
    } else {
        shared.clone()
    }
}

const DEDUPES: [Dedupe; 3] = [Dedupe::None, Dedupe::Batch, Dedupe::Session];
const TASK_MODES: [TaskMode; 3] = [TaskMode::Never, TaskMode::Auto, TaskMode::Required];
const APPROVALS: [Approval; 3] = [Approval::Never, Approval::Destructive, Approval::Always];

/// The value with the written name.
fn chosen<T: Copy>(
    fields: &Fields<'_>,
    key: &str,
    values: &[T],
    word: impl Fn(T) -> &'static str,
) -> Option<T> {
    let written = fields.text(key)?;
    values.iter().copied().find(|value| word(*value) == written)
}

fn cache_policy(fields: &Fields<'_>, findings: &mut Findings<'_>) -> CachePolicy {
    let policy = CachePolicy::new().with_shared(fields.flag("shared").unwrap_or(false));
    let Some(node) = fields.node("ttl") else { return policy };
    if let Some(ttl) = duration(node).filter(|ttl| !ttl.is_zero()) {
        return policy.with_ttl(ttl);
    }
    let message = "`ttl` must be greater than zero";
    findings.add(
        Diagnostic::error("out-of-range", &node.span, message)
            .help("write how long results stay valid: 30s; without `ttl` the host decides"),
    );
    policy
}

fn retry_policy(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Option<RetryPolicy> {
    let node = fields.node("max")?;
    let max = fields.integer("max").filter(|max| (1..=RETRIES_MAX).contains(max));
    let Some(max) = max.and_then(|max| u32::try_from(max).ok()) else {
        let message = "`max` is 1 to 10 retries";
        findings.add(
            Diagnostic::error("out-of-range", &node.span, message)
                .help("remove `retry` for no retries"),
        );
        return None;
    };
    let policy = RetryPolicy::new(max);
    let Some(node) = fields.node("backoff") else { return Some(policy) };
    let backoff = duration(node).filter(|pause| !pause.is_zero() && *pause <= BACKOFF_MAX);
    if backoff.is_none() {
        let message = "`backoff` is 1ms to 30s; it is doubled for each further retry";
        findings.add(Diagnostic::error("out-of-range", &node.span, message));
    }
    Some(backoff.map_or(policy, |backoff| policy.with_backoff(backoff)))
}

fn touched(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Resources {
    let mut names = |key: &str| {
        for item in fields.node(key).map(Node::items).unwrap_or_default() {
            if item.as_str().is_some_and(|name| name.trim().is_empty()) {
                let message = "a resource without a name";
                findings.add(
                    Diagnostic::error("bad-resource", &item.span, message)
                        .help("write a name that all tools that share it use: tickets"),
                );
            }
        }
        fields.texts(key).unwrap_or_default()
    };
    let (reads, writes) = (names("reads"), names("writes"));
    let resources = reads.into_iter().fold(Resources::new(), Resources::reads);
    writes.into_iter().fold(resources, Resources::writes)
}

fn duration(node: &Node) -> Option<Duration> {
    let duration: HumanDuration = node.as_str()?.parse().ok()?;
    duration.0
}

/// The diagnostic for a tool whose results cannot be cached.
fn uncacheable(
    fields: &Fields<'_>,
    entry: &Entry,
    annotations: Annotations,
    findings: &mut Findings<'_>,
) {
    let Some(lacking) = lacking(annotations) else { return };
    let message = format!("only results of tools that are {lacking} can be cached");
    let diagnostic = Diagnostic::error("uncacheable-tool", &entry.key_span, message).help(
        "if a call changes nothing and calling twice is like calling once, write `annotations: \
         {read_only: true, idempotent: true}`; otherwise remove `cache`",
    );
    findings.add(beside_annotations(diagnostic, fields));
}

/// The diagnostic for a tool whose calls cannot be deduplicated in a session.
fn never_repeated(
    fields: &Fields<'_>,
    entry: &Entry,
    annotations: Annotations,
    findings: &mut Findings<'_>,
) {
    let Some(lacking) = lacking(annotations) else { return };
    let message = format!(
        "`dedupe: session` is for tools that are {lacking}: a session's second call would not run"
    );
    let diagnostic = Diagnostic::error("uncacheable-tool", &entry.key_span, message).help(
        "if a call changes nothing and calling twice is like calling once, write `annotations: \
         {read_only: true, idempotent: true}`; otherwise write `dedupe: batch`",
    );
    findings.add(beside_annotations(diagnostic, fields));
}

/// The annotations that a tool lacks for caching.
fn lacking(annotations: Annotations) -> Option<&'static str> {
    match (annotations.read_only, annotations.idempotent) {
        (true, true) => None,
        (true, false) => Some("idempotent"),
        (false, true) => Some("read-only"),
        (false, false) => Some("read-only and idempotent"),
    }
}

/// Adds the place of the annotations.
fn beside_annotations(diagnostic: Diagnostic, fields: &Fields<'_>) -> Diagnostic {
    match fields.entry("annotations") {
        Some(entry) => diagnostic.also(&entry.key_span, "the tool's annotations"),
        None => diagnostic,
    }
}

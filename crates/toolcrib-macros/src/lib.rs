//! The `#[tool]` attribute: turns a Rust function into a tool of toolcrib.
//!
//! Hosts and tool authors use it through the `toolcrib` facade; authors who need only the contract depend on this crate
//! and on `toolcrib-tool`.
#![forbid(unsafe_code)]

mod contract;
mod description;
mod expand;
mod function;
mod settings;

use proc_macro::TokenStream;

/// Turns a function into a tool and registers it at link time. The function itself stays callable as written.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolcrib_macros::tool;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// }
///
/// /// Add two whole numbers.
/// #[tool(read_only, idempotent, open_world = false, examples(r#"{"a": 1, "b": 2}"#))]
/// fn add(args: Add) -> String {
///     (args.a + args.b).to_string()
/// }
///
/// assert_eq!(add(Add { a: 1, b: 2 }), "3");
/// let tools = toolcrib_tool::native_tools();
/// assert_eq!(tools[0].name, "add");
/// ```
///
/// # The function
///
/// - It may be `async`. It has no generics and no `self`, and is neither `unsafe` nor `extern`.
/// - It takes at most one arguments type (`Deserialize + JsonSchema`; it may borrow from the
///   call) and at most one `&CallContext`, in any order.
/// - Other parameters have attributes that say where their values come from; see
///   [below](#parameters-the-host-fills-in).
/// - It returns anything that is `IntoOutcome`: `String`, `serde_json::Value`, `ToolOutput`,
///   `Json<T>` (whose schema becomes the output schema), or a `Result` of one of these.
/// - Its doc comment is the description for models. The lines of a paragraph are joined.
///
/// A sync function runs on the blocking pool; `blocking = false` declares it fast and free of blocking calls. An async
/// function runs on the caller's task unless it is marked `blocking`.
///
/// # Settings
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `name = "…"` | the tool's name, `^[a-zA-Z0-9_-]{1,64}$` | the function's name |
/// | `title = "…"` | the display name | none |
/// | `category = "…"` | the category | `custom` |
/// | `tags("…", …)` | free labels | none |
/// | `version = "…"` | the tool's own version | none |
/// | `read_only` | the call changes nothing | `false` |
/// | `destructive = false` | the call destroys nothing | `true` |
/// | `idempotent` | repeating a call has no further effect | `false` |
/// | `open_world = false` | the call stays on this host | `true` |
/// | `hidden` | the call is hidden from people | `false` |
/// | `final_output` | the output becomes the assistant's message | `false` |
/// | `terminal` | the call ends an agent's loop | `false` |
/// | `parallel = false` | no other call of a batch runs at the same time | `true` |
/// | `blocking = …` | whether calls run on the blocking pool | `true` for a sync function |
/// | `timeout = "30s"` | the tool's own time limit: a whole number of `ms`, `s` or `m` | the executor's |
/// | `wind_down = "1s"` | how long after its deadline or its cancellation, which it must watch, a call may take to end what it started and return its partial output | no time |
/// | `output_chars = N` | characters of text a model gets | the executor's |
/// | `max_concurrent = N` | calls that run at once in this process | no limit |
/// | `rate = "30/min"` | calls that start per `s`, `min` or `h` | no limit |
/// | `cache`, `cache = "60s"`, `cache(ttl = "60s", shared)` | successful answers are cached; for `read_only`, `idempotent` tools. `shared`: also answers of calls that read their session, services or files, or called other tools | never |
/// | `dedupe = "session"` | a call equal to an earlier one gets its answer: within its `session` (for `read_only`, `idempotent` tools), or within its `batch` | `none` |
/// | `retry = N` | up to N retries after a retryable error; for `idempotent` tools | never |
/// | `reads("…", …)`, `writes("…", …)` | resources; a call that writes one drops cached answers that depend on it | none |
/// | `approval = "always"` | which calls wait for approval: `never`, `always`, or `destructive` ones | `never` |
/// | `task = "required"` | which calls become tasks: `never`, `auto`: long ones, or `required`: all | `auto` |
/// | `refresh = path` | an `async fn(&ToolDefinition) -> Result<Option<ToolDefinition>, ToolError>` that returns the current definition, or `None` if it has not changed | it never changes |
/// | `refresh_every = "5m"` | how often `refresh` is called | when the host reports a change |
/// | `validate = path` | a `fn(&Args, &CallContext) -> Result<(), ToolError>` that checks what the schema cannot express; it must not block | none |
/// | `plan = path` | a `fn(&Args, &CallContext) -> Result<Plan, ToolError>` that describes what a call would do, for dry runs; it starts, sends and writes nothing | no plan |
/// | `preview = path` | a `fn(&PartialArguments) -> Option<StatusUpdate>` that says what a call is about while a model still writes its arguments | no preview |
/// | `available = path` | a `fn() -> Result<(), String>` that checks whether the tool can run on this machine, or returns the reason; called when the registry is built | always available |
/// | `inject(parameter = "context_key", …)` | context values that the host fills in; `parameter?` makes one optional | none |
/// | `empty_as_absent("…", …)` | properties for which `""` means "not given" | none |
/// | `examples("…", …)` | valid argument objects as JSON, parsed at compile time | none |
///
/// A switch stands alone or takes `= true` or `= false`.
///
/// # Parameters the host fills in
///
/// No model sees or sets them:
///
/// - `#[context("user")] user: String` is a context value; without it the call fails with `missing_context`, unless the
///   type is an `Option`.
/// - `#[service] db: Arc<Database>` is a service of the host, found by its type, or by name with
///   `#[service("archive")]`; without it the call fails with `unavailable`, unless the type is an `Option<Arc<…>>`.
/// - `#[state] seen: &Counter` is state that the tool keeps between calls; it starts as `Default`. Calls run at the
///   same time and share it, so changes need an atomic or a lock.
///
/// ```standalone_crate
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolcrib_macros::tool;
///
/// struct Tickets;
///
/// /// Say how often each user's tickets were looked at.
/// #[tool(read_only, cache = "60s", idempotent, reads("tickets"), rate = "30/min")]
/// fn looks(
///     #[context("user")] user: String,
///     #[service] tickets: Option<Arc<Tickets>>,
///     #[state] looks: &AtomicU64,
/// ) -> String {
///     let looks = looks.fetch_add(1, Ordering::Relaxed) + 1;
///     format!("{user}: {looks}, tickets here: {}", tickets.is_some())
/// }
/// # let definition = (toolcrib_tool::native_tools()[0].definition)()?;
/// # assert_eq!(definition.injections()[0].context_key(), "user");
/// # assert_eq!(definition.rate().map(|rate| rate.to_string()).as_deref(), Some("30/min"));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
///
/// A parameter declared with `inject(…)` is read with `cx.injected("parameter")`.
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(settings.into(), &item.into()).into()
}

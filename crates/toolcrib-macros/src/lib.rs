//! The `#[tool]` attribute: a Rust fn becomes a tool of toolcrib.
//!
//! Hosts and tool authors use it through the `toolcrib` facade; authors who want nothing but the
//! contract depend on this crate and on `toolcrib-tool`.
#![forbid(unsafe_code)]

mod contract;
mod description;
mod expand;
mod function;
mod settings;

use proc_macro::TokenStream;

/// Makes a tool of a fn and registers it at link time. The fn itself stays callable as written.
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
/// # The fn
///
/// - It may be `async`. It has no generics, no `self` and is neither `unsafe` nor `extern`.
/// - It takes at most one arguments type (`Deserialize + JsonSchema`; it may borrow from the
///   call) and at most one `&CallContext`, in any order.
/// - Other parameters are marked with where they come from; see [below](#parameters-the-host-fills-in).
/// - It returns anything that is `IntoOutcome`: `String`, `serde_json::Value`, `ToolOutput`,
///   `Json<T>` (whose schema becomes the output schema), or a `Result` of one of these.
/// - Its doc comment is the description a model reads. Lines of a paragraph are joined.
///
/// A sync fn runs on the blocking pool; `blocking = false` says that it is quick and pure. An
/// async fn runs on the caller's task unless it says `blocking`.
///
/// # Settings
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `name = "…"` | the tool's name, `^[a-zA-Z0-9_-]{1,64}$` | the fn's name |
/// | `title = "…"` | a name for people | none |
/// | `category = "…"` | the family | `custom` |
/// | `tags("…", …)` | free labels | none |
/// | `version = "…"` | the tool's own version | none |
/// | `read_only` | the call changes nothing | `false` |
/// | `destructive = false` | the call destroys nothing | `true` |
/// | `idempotent` | calling twice is like calling once | `false` |
/// | `open_world = false` | the call stays on this host | `true` |
/// | `hidden` | the call is kept out of what people are shown | `false` |
/// | `final_output` | the output becomes the assistant's message | `false` |
/// | `terminal` | the call ends an agent's loop | `false` |
/// | `parallel = false` | nothing of a batch runs beside this call | `true` |
/// | `blocking = …` | whether calls run on the blocking pool | `true` for a sync fn |
/// | `timeout = "30s"` | the tool's own limit: a whole number of `ms`, `s` or `m` | the executor's |
/// | `wind_down = "1s"` | how long after its deadline or its cancellation, which it must watch, a call may take to end what it started and hand over what it has | no time |
/// | `output_chars = N` | characters of text a model gets | the executor's |
/// | `max_concurrent = N` | calls that run at once in this process | no limit |
/// | `rate = "30/min"` | calls that start per `s`, `min` or `h` | no limit |
/// | `cache`, `cache = "60s"`, `cache(ttl = "60s", shared)` | successful answers are used again; for `read_only`, `idempotent` tools. `shared`: also answers of calls that asked for their session, services or files, or called other tools | never |
/// | `dedupe = "session"` | the same call again is answered from the first: in its `session` (for `read_only`, `idempotent` tools), or in its `batch` | `none` |
/// | `retry = N` | after an error that says so, up to N times more; for `idempotent` tools | never |
/// | `reads("…", …)`, `writes("…", …)` | resources; a call that writes one makes what others read from it forgotten | none |
/// | `approval = "always"` | calls wait for a person: `never`, `always`, or `destructive` ones | `never` |
/// | `task = "required"` | calls may be answered with a task: `never`, `auto`: those that take long, or `required`: all | `auto` |
/// | `refresh = path` | an `async fn(&ToolDefinition) -> Result<Option<ToolDefinition>, ToolError>` that gives the definition as it should be now, or `None` if it is still right | it never changes |
/// | `refresh_every = "5m"` | how often `refresh` is asked | when the host says so |
/// | `validate = path` | a `fn(&Args, &CallContext) -> Result<(), ToolError>` that says what the schema cannot; it must not block | none |
/// | `plan = path` | a `fn(&Args, &CallContext) -> Result<Plan, ToolError>` that says what a call would do, for dry runs; it starts, sends and writes nothing | it cannot say |
/// | `available = path` | a `fn() -> Result<(), String>` that says whether the tool can run on this machine, and if not, why; asked when the registry is built | it can |
/// | `inject(parameter = "context_key", …)` | values the host fills in; `parameter?` makes one optional | none |
/// | `empty_as_absent("…", …)` | properties for which `""` means "not given" | none |
/// | `examples("…", …)` | argument objects that are right, as JSON, parsed at compile time | none |
///
/// A switch stands alone or takes `= true` or `= false`.
///
/// # Parameters the host fills in
///
/// No model sees or sets them:
///
/// - `#[context("user")] user: String` is a value of the host's context; without it the call is
///   answered `missing_context`, unless the type is an `Option`.
/// - `#[service] db: Arc<Database>` is what the host lends, found by its type, or by name with
///   `#[service("archive")]`; without it the call is answered `unavailable`, unless the type is an
///   `Option<Arc<…>>`.
/// - `#[state] seen: &Counter` is kept by the tool itself from call to call; it begins as
///   `Default`. Calls run at once, so it is shared: what changes is an atomic or behind a lock.
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

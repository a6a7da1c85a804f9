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
///   call) and at most one `&CallContext`, in either order.
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
/// | `output_chars = N` | characters of text a model gets | the executor's |
/// | `inject(parameter = "context_key", …)` | values the host fills in; `parameter?` makes one optional | none |
/// | `empty_as_absent("…", …)` | properties for which `""` means "not given" | none |
/// | `examples("…", …)` | argument objects that are right, as JSON, parsed at compile time | none |
///
/// A switch stands alone or takes `= true` or `= false`.
///
/// # Injected values
///
/// An injected parameter is in no schema a model sees and never in the arguments type: read it
/// with `cx.injected("parameter")`.
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(settings.into(), &item.into()).into()
}

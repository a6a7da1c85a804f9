//! Tools from closures.

use std::future::Future;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::{Arguments, BoxFuture, CallContext, IntoOutcome, Tool, ToolError, ToolOutcome};

/// Makes a tool's body from an async closure over its typed arguments.
///
/// ```
/// use serde::Deserialize;
/// use toolcrib_tool::{CallContext, Tool, tool_fn};
///
/// #[derive(Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// fn is_tool(_: impl Tool) {}
/// is_tool(tool_fn(|args: Greet, _cx: CallContext| async move { format!("Hello, {}!", args.name) }));
/// ```
pub fn tool_fn<T, F, R>(function: F) -> FnTool<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    FnTool { function, arguments: PhantomData }
}

/// A tool made by [`tool_fn`].
#[derive(Debug)]
pub struct FnTool<T, F> {
    function: F,
    arguments: PhantomData<fn(T)>,
}

impl<T, F, R> Tool for FnTool<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoOutcome> + Send + 'static,
{
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(
            async move { (self.function)(arguments.parse()?, cx.clone()).await.into_outcome() },
        )
    }

    fn validates(&self) -> bool {
        false
    }
}

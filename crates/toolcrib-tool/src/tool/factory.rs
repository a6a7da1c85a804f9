//! Tools with an instance for each call.

use std::future::Future;
use std::sync::Arc;

use crate::{BoxFuture, CallContext, Tool, ToolError};

/// Makes an instance for one call from the call's context: opens the user's database, for example. When the call is
/// over, however it ended, the instance is closed ([`Tool::close`]), so each call needs a new one.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_factory, tool_fn};
///
/// let definition = ToolDefinition::builder("greet").description("Greet the user.").build()?;
/// let factory = tool_factory(|cx| async move {
///     let user = cx.value("user").and_then(|user| user.as_str()).unwrap_or("you").to_owned();
///     Ok(tool_fn(move |_: serde_json::Value, _| {
///         let greeting = format!("Hello, {user}!");
///         async move { greeting }
///     }))
/// });
/// let entry = ToolEntry::per_use(definition, Arc::new(factory), Source::new(Layer::Host, "doc"));
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub trait ToolFactory: Send + Sync + 'static {
    /// Whether instances check arguments ([`Tool::validate`]) or plan calls ([`Tool::plan`]), so that an instance is
    /// needed before anybody is asked for approval. That instance is closed before anybody is asked, and another one is
    /// made for the run. Default `false`: an instance checks its arguments right before it runs.
    fn is_asked_first(&self) -> bool {
        false
    }

    /// Makes the instance, within the call's time limit.
    fn create<'a>(&'a self, cx: &'a CallContext)
    -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>>;
}

/// Makes a factory from an async closure.
pub fn tool_factory<F, R, T>(create: F) -> FnFactory<F>
where
    F: Fn(CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: Tool,
{
    FnFactory(create)
}

/// A factory made by [`tool_factory`].
#[derive(Debug)]
pub struct FnFactory<F>(F);

impl<F, R, T> ToolFactory for FnFactory<F>
where
    F: Fn(CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: Tool,
{
    fn create<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Arc<dyn Tool>, ToolError>> {
        Box::pin(async move { Ok(Arc::new((self.0)(cx.clone()).await?) as Arc<dyn Tool>) })
    }
}

//! Link-time registration of tools.

use std::sync::Arc;

use crate::{DefinitionError, Layer, Origin, Source, Tool, ToolDefinition, ToolEntry};

/// The entry that `#[tool]` submits to `inventory`: names and function pointers only, so that nothing runs before
/// `main`.
#[derive(Debug)]
pub struct NativeTool {
    /// The tool's name, by which entries are sorted.
    pub name: &'static str,
    /// The crate that declares it.
    pub krate: &'static str,
    /// The source file, as the compiler sees it.
    pub file: &'static str,
    /// The line of the function.
    pub line: u32,
    /// Makes the definition.
    pub definition: fn() -> Result<ToolDefinition, DefinitionError>,
    /// Makes the body.
    pub body: fn() -> Arc<dyn Tool>,
    /// Whether it can run here; if not, the reason as one clause.
    pub available: fn() -> Result<(), String>,
}

inventory::collect!(NativeTool);

impl NativeTool {
    /// The registry entry, with crate, file and line as its source. A tool that cannot run here is unavailable.
    pub fn entry(&self) -> Result<ToolEntry, DefinitionError> {
        let origin = Origin { file: self.file.to_owned(), line: self.line, column: 0 };
        let source = Source::new(Layer::Native, self.krate).at(origin);
        let entry = ToolEntry::new((self.definition)()?, (self.body)(), source);
        Ok(match (self.available)() {
            Ok(()) => entry,
            Err(reason) => entry.unavailable(reason),
        })
    }
}

/// Every tool linked into this binary, sorted by name, then crate, file and line.
///
/// `inventory` yields link order, which depends on the build profile and must not be visible.
pub fn native_tools() -> Vec<&'static NativeTool> {
    let mut tools: Vec<_> = inventory::iter::<NativeTool>.into_iter().collect();
    tools.sort_unstable_by_key(|tool| (tool.name, tool.krate, tool.file, tool.line));
    tools
}

//! Tools on their way into a registry: made, registered, called for the first time.

use std::sync::Arc;

use rmcp::handler::server::tool::ToolRouter;
use rmcp::model::{JsonObject, Tool, object};
use tokio::runtime::Runtime;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_testkit::search_tool::{self, ARGUMENTS, Schemas};
use toolcrib_tool::{ToolCall, ToolEntry};

use crate::call::{CALL_ID, runtime};
use crate::peer::{self, Server};

/// One way of keeping tools, from nothing to tools that have been called.
pub trait Shelf {
    /// Who it is, such as `ours` or `rmcp`.
    fn name(&self) -> &'static str;
    /// Makes definitions and bodies of so many tools, as a source yields them.
    fn make(&mut self, count: usize, schemas: Schemas);
    /// Registers all that were made. Afterwards nothing is kept but the registry.
    fn register(&mut self);
    /// Calls each tool once; `false` where a first call makes nothing that stays.
    fn call_each(&mut self) -> bool;
}

/// A shelf of each kind, empty: `ours`, `rmcp`, and `rig` with the feature of that name.
pub fn shelves() -> Vec<Box<dyn Shelf>> {
    vec![
        Box::new(Ours { entries: Vec::new(), turn: None, runtime: runtime() }),
        Box::new(Rmcp { tools: Vec::new(), router: ToolRouter::new() }),
        #[cfg(feature = "rig")]
        Box::new(Rig { tools: Vec::new(), set: rig_agent::tool::ToolSet::default() }),
    ]
}

struct Ours {
    entries: Vec<ToolEntry>,
    turn: Option<Turn>,
    runtime: Runtime,
}

impl Shelf for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn make(&mut self, count: usize, schemas: Schemas) {
        self.entries = (0..count).map(|number| search_tool::entry(number, schemas)).collect();
    }

    fn register(&mut self) {
        let mut builder = RegistryBuilder::new();
        for entry in std::mem::take(&mut self.entries) {
            // The names are unique; what is measured must not be added to.
            let _ = builder.register(entry);
        }
        let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
        self.turn = Some(executor.turn(TurnOptions::default()));
    }

    fn call_each(&mut self) -> bool {
        let Some(turn) = &self.turn else { return false };
        self.runtime.block_on(async {
            for definition in turn.definitions() {
                let call = ToolCall::new(CALL_ID, definition.name(), ARGUMENTS);
                assert!(turn.call(call).await.is_success());
            }
        });
        true
    }
}

struct Rmcp {
    tools: Vec<Tool>,
    router: ToolRouter<Server>,
}

impl Shelf for Rmcp {
    fn name(&self) -> &'static str {
        "rmcp"
    }

    fn make(&mut self, count: usize, schemas: Schemas) {
        let shared: Arc<JsonObject> = Arc::new(object(search_tool::schema()));
        self.tools = (0..count).map(|number| peer::definition(number, schemas, &shared)).collect();
    }

    fn register(&mut self) {
        for tool in std::mem::take(&mut self.tools) {
            self.router.add_route(peer::route(tool));
        }
    }

    fn call_each(&mut self) -> bool {
        false
    }
}

#[cfg(feature = "rig")]
struct Rig {
    tools: Vec<rig_agent::tool::RegisteredTool>,
    set: rig_agent::tool::ToolSet,
}

#[cfg(feature = "rig")]
impl Shelf for Rig {
    fn name(&self) -> &'static str {
        "rig"
    }

    fn make(&mut self, count: usize, schemas: Schemas) {
        self.tools = (0..count).map(|number| crate::rig::tool(number, schemas)).collect();
    }

    fn register(&mut self) {
        for tool in std::mem::take(&mut self.tools) {
            self.set.add_registered_tool(tool);
        }
    }

    fn call_each(&mut self) -> bool {
        false
    }
}

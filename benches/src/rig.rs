//! The other peer: rig's `ToolSet` with the same tools.
//!
//! A `rig_core::tool::Tool` has its name as a constant of its type, so tools that are named at run
//! time are handlers. This one reads its arguments straight into their type, as rig's own adapter
//! of a typed tool does, and leaves out the copies of the context that adapter makes.

use rig_agent::core::effect::{
    EffectKind, FamilyDescriptor, HandlerDescriptor, Outcome, family, tool_key,
};
use rig_agent::core::error::{ErrorKind, ErrorReport};
use rig_agent::core::serve::{Dispatch, Reply, Serve};
use rig_agent::tool::{
    RegisteredTool, ToolContext, ToolExecutionError, ToolOutput, ToolResult, ToolSet,
};
use serde_json::Value;
use toolcrib_testkit::search_tool::{self, ARGUMENTS, Schemas, SearchArguments};

struct Search {
    name: String,
    parameters: Value,
}

impl Serve for Search {
    type Family = family::Tool;

    fn descriptor(&self) -> HandlerDescriptor {
        HandlerDescriptor {
            key: tool_key(&self.name),
            family: FamilyDescriptor::Tool {
                name: self.name.clone(),
                description: "Search the files of a folder for names or content. Read-only."
                    .to_owned(),
                parameters: self.parameters.clone(),
                embedding: None,
            },
            layers: Vec::new(),
        }
    }

    async fn serve(&self, kind: EffectKind, _: Dispatch) -> Reply {
        let EffectKind::ToolCall { args, .. } = kind else {
            return Reply::Outcome(Err(ErrorReport::new(ErrorKind::Internal, "not a tool call")));
        };
        let result = match serde_json::from_str::<SearchArguments>(&args) {
            Ok(args) => ToolResult::success(ToolOutput::text(args.path)),
            Err(error) => ToolResult::failed(ToolExecutionError::invalid_args(error.to_string())),
        };
        Reply::Outcome(Ok(Outcome::ToolResult { result }))
    }
}

/// The tool of that number, ready to be registered.
pub(crate) fn tool(number: usize, schemas: Schemas) -> RegisteredTool {
    let handler = Search { name: search_tool::name(number), parameters: schemas.schema(number) };
    RegisteredTool::from_handler(handler).expect("a tool handler")
}

/// A set of `count` tools that answer with the path they were given.
pub(crate) fn set(count: usize, schemas: Schemas) -> ToolSet {
    let mut set = ToolSet::default();
    for number in 0..count {
        set.add_registered_tool(tool(number, schemas));
    }
    set
}

/// A call by name, from the text of its arguments to its result; whether it did its work.
pub(crate) async fn call(set: &ToolSet, name: &str) -> bool {
    let result = set.execute(name, std::hint::black_box(ARGUMENTS), &mut ToolContext::new()).await;
    std::hint::black_box(result).is_success()
}

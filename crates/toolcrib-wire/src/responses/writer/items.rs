//! Items that are written at once.

use serde_json::{Value, json};

use super::frame::{item_event, plain_event};
use super::{ResponseWriter, StreamEvent};
use crate::responses::prefixes::prefix_of;

impl ResponseWriter {
    /// A whole item. One without an id gets one.
    pub fn item(&mut self, mut item: Value) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() || !item.is_object() {
            return out;
        }
        self.start(&mut out);
        self.pause_spoken(&mut out);
        let place = if let Some(id) = item["id"].as_str().filter(|id| !id.is_empty()) {
            self.stream.numbering.place_as(id)
        } else {
            let prefix = prefix_of(item["type"].as_str().unwrap_or_default());
            let place = self.stream.numbering.place(prefix);
            item["id"] = (&*place.item_id).into();
            place
        };
        let shown = self.settings.dialect.item(item.clone(), self.settings.include);
        let numbering = &mut self.stream.numbering;
        out.push(item_event(numbering, "response.output_item.added", &place, &shown));
        self.finish_item(&place, item, &mut out);
        out
    }

    /// Asks the client whether a call may run. It answers with `mcp_approval_response` and this id. The `question` is
    /// everything to know about the call as text, in a member that the protocol does not have.
    pub fn request_approval(
        &mut self,
        id: &str,
        server_label: &str,
        name: &str,
        arguments: &str,
        question: &str,
    ) -> Vec<StreamEvent> {
        self.item(json!({
            "id": id,
            "type": "mcp_approval_request",
            "server_label": server_label,
            "name": name,
            "arguments": arguments,
            "question": question,
        }))
    }

    /// The tools that an MCP server has: each with `name`, `description`, `input_schema` and `annotations`.
    pub fn list_tools(&mut self, server_label: &str, tools: &[Value]) -> Vec<StreamEvent> {
        let mut out = Vec::new();
        if self.is_over() {
            return out;
        }
        self.start(&mut out);
        self.pause_spoken(&mut out);
        let place = self.stream.numbering.place(prefix_of("mcp_list_tools"));
        let item = |tools: &[Value]| {
            json!({
                "id": &*place.item_id,
                "type": "mcp_list_tools",
                "server_label": server_label,
                "tools": tools,
            })
        };
        let begun = self.settings.dialect.item(item(&[]), self.settings.include);
        let numbering = &mut self.stream.numbering;
        out.push(item_event(numbering, "response.output_item.added", &place, &begun));
        for name in ["response.mcp_list_tools.in_progress", "response.mcp_list_tools.completed"] {
            let name = self.settings.dialect.event_name(name);
            out.push(plain_event(numbering, &name, &place));
        }
        let done = item(tools);
        self.finish_item(&place, done, &mut out);
        out
    }
}

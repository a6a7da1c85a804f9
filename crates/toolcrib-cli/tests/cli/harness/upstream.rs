//! Other MCP servers, as scripts in Python.

use std::fs;

use super::crib::Crib;

/// A stateless server with one tool. `NAME`, `TOOL` and `CALL` are replaced.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message["method"], {}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}},
                  "serverInfo": {"name": "NAME", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object"}
        result = {"tools": [{"name": "TOOL", "description": "Do it.", "inputSchema": schema}]}
    elif method == "tools/call":
        CALL
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Declares a server in the crib with one tool without arguments. `call` is the Python code of a
/// call, which sets `result`. It works in the crib's data folder, which only the script uses.
pub(crate) fn add_server(crib: &Crib, name: &str, tool: &str, call: &str) {
    let text = SERVER.replace("NAME", name).replace("TOOL", tool);
    let script = crib.data().join(format!("{name}.py"));
    fs::write(&script, text.replace("CALL", &call.replace('\n', "\n        "))).expect("a script");
    let declaration = format!(
        "toolcrib: 1\nupstream:\n  - name: {name}\n    command: [python3, -I, -S, {}]\n    \
         sandbox: {{write: [{}]}}\n",
        script.display(),
        crib.data().display()
    );
    crib.write(&format!("{name}.yaml"), &declaration);
}

"""An MCP server for the service desk, which stands for one that you did not write."""
import json
import sys

NAMES = ["get_ticket_by_id", "list_open", "list_secrets", "delete_ticket"]
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params, result = message["method"], message.get("params") or {}, {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "tickets", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [
            {"name": name, "description": f"Does {name}.", "inputSchema": SCHEMA} for name in NAMES]}
    elif method == "tools/call":
        text = f"{params['name']}: ticket {params['arguments'].get('id')} is open"
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

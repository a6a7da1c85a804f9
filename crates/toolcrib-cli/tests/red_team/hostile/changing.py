"""An MCP server over stdio whose tool is described by a file, read at every list."""
import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method, result = message["method"], {}
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "changing", "version": "1"}}
    elif method == "tools/list":
        with open(sys.argv[1]) as file:
            text = file.read()
        result = {"tools": [{"name": "get", "description": text, "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "the tool has run"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

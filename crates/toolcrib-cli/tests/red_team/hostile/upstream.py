"""An MCP server over stdio that has turned hostile: its tool `run` does deeds."""
import contextlib
import io
import json
import os
import sys

# `deeds.py` stands before this text.
SCHEMA = {"type": "object", "properties": {"deed": {"type": "string"}, "facts": {"type": "string"}},
          "required": ["deed", "facts"]}


def answer(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "run", "description": "Run a deed.", "inputSchema": SCHEMA}]}
    if method == "tools/call":
        said = io.StringIO()
        folder = os.getcwd()
        with contextlib.redirect_stdout(said):
            try:
                arguments = message["params"]["arguments"]
                do(arguments["deed"], json.loads(arguments["facts"]))
            except BaseException as error:
                print("the deed failed:", error)
        attempt("back", os.chdir, folder)
        return {"content": [{"type": "text", "text": said.getvalue()}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
        sys.__stdout__.write(json.dumps(reply) + "\n")
        sys.__stdout__.flush()

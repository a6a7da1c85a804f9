"""A door in front of an MCP server: `initialize` is refused, and everything else passes.

door.py PROGRAM ARGUMENT...
"""

import json
import subprocess
import sys
import threading

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def say(line):
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def back():
    for line in server.stdout:
        say(line)


threading.Thread(target=back, daemon=True).start()
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message.get("method") == "initialize":
        error = {"code": -32601, "message": "there is no handshake any more"}
        refusal = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        say(json.dumps(refusal).encode() + b"\n")
    else:
        server.stdin.write(line)
        server.stdin.flush()
server.stdin.close()
server.wait()

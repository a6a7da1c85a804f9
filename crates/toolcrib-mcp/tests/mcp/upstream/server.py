"""A small MCP server on standard input and output that does what its script says.

The script is a JSON file, given as the first argument. It is read at the start, and again when the
tool `reload` is called, after which the server says that its tools have changed. A server whose
script says `waits` starts when another script does not. Every request and
notification is noted down in `<script>.log`, one JSON text a line.
"""

import json
import os
import signal
import sys
import threading
import time

path = sys.argv[1]
# A secret that contains control characters.
HIDDEN = "CTL\x1b\x9b-one\r\r\ntwo"
signal.alarm(60)  # whatever a test forgets is gone after a minute


sending = threading.Lock()


def script():
    with open(path) as file:
        return json.load(file)


def send(**message):
    with sending:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def announce_all_the_time():
    for _ in range(3000):
        send(method="notifications/prompts/list_changed")
        time.sleep(0.0005)


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(request, name, arguments, meta):
    token = meta.get("progressToken")
    if name == "crash":
        print("fatal: token", os.environ.get("TOKEN", "none"), "was refused", file=sys.stderr)
        os._exit(3)
    if name == "hang":
        return  # it is never answered
    if name == "stuck":
        time.sleep(60)
    if name == "slow":
        for step in range(1, 4):
            send(method="notifications/progress", params={
                "progressToken": token, "progress": step, "total": 3, "message": f"step {step}"})
            time.sleep(0.1)
    if name == "brief":
        lines = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": token, "progress": step, "total": 4, "message": f"step {step}"}}
            for step in range(1, 5)]
        lines.append({"jsonrpc": "2.0", "id": request, "result": text("done")})
        sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines))
        return sys.stdout.flush()
    if name == "flood":
        for _ in range(2000):
            sys.stdout.write("this is no message " * 50 + "\n")
            print("complaint " * 100, file=sys.stderr)
            send(method="notifications/progress", params={"progressToken": token, "progress": 1})
            send(method="notifications/tools/list_changed")
        sys.stdout.write("x" * (17 << 20) + "\n")
    if name == "endless":
        return send(id=request, result=text("x" * (20 << 20)))
    if name == "announce":
        send(method="notifications/resources/list_changed")
        send(method="notifications/prompts/list_changed")
    if name == "storm":
        threading.Thread(target=announce_all_the_time, daemon=True).start()
    if name == "pester":
        for number in range(300):
            send(id=f"{request}-{number}", method="elicitation/create", params={
                "mode": "form", "message": "?" * (70_000 if number < 100 else 10),
                "_meta": {"progressToken": token},
                "requestedSchema": {"type": "object", "properties": {}}})
        return  # it is never answered
    if name == "late":
        # The answer, and then progress and a question of the call that has ended.
        send(id=request, result=text("done"))
        send(method="notifications/progress", params={
            "progressToken": token, "progress": 9, "message": "too late"})
        return send(id=f"late-{request}", method="elicitation/create", params={
            "mode": "form", "message": "Too late?", "_meta": {"progressToken": token},
            "requestedSchema": {"type": "object", "properties": {}}})
    if name == "reload":
        send(method="notifications/tools/list_changed")
    if name == "ask":
        properties = {"town": {"type": "string", "title": "Town"}}
        refers = arguments.get("refers", {})
        if refers == "own":
            refers = {"progressToken": token}
        send(id=f"ask-{request}", method="elicitation/create", params={
            "mode": "form", "message": arguments.get("message", "Which town?"),
            **({"_meta": refers} if refers else {}),
            "requestedSchema": {"type": "object", "properties": properties, "required": ["town"]}})
        asking[f"ask-{request}"] = request
        return  # goes on with the answer
    if name == "leak":
        if arguments["how"] == "text":
            return send(id=request, result=text(HIDDEN))
        if arguments["how"] == "fail":
            return send(id=request, result=text(HIDDEN, isError=True))
        if arguments["how"] == "error":
            return send(id=request, error={"code": -32602, "message": HIDDEN})
        if arguments["how"] == "data":
            return send(id=request, result={"content": [], "structuredContent": {HIDDEN: HIDDEN}})
        if arguments["how"] == "link":
            return send(id=request, result={"content": [{
                "type": "resource_link", "uri": "a:b", "name": HIDDEN, "description": HIDDEN}]})
        if arguments["how"] == "file":
            return send(id=request, result={"content": [{
                "type": "resource", "resource": {"uri": "a:b", "text": HIDDEN}}]})
        send(method="notifications/progress", params={
            "progressToken": token, "progress": 1, "message": "x" * 290 + HIDDEN})
        return send(id=request, result=text("[masked]"))
    if name == "fail":
        return send(id=request, result=text("no such thing", isError=True))
    if name == "error":
        return send(id=request, error={"code": -32602, "message": "not like this"})
    if name == "env":
        return send(id=request, result=text(json.dumps(sorted(os.environ))))
    if name == "links":
        uris = arguments.get("uris", ["note://1"])
        return send(id=request, result={"content": [
            {"type": "resource_link", "uri": uri, "name": uri} for uri in uris]})
    if name.startswith("image"):
        return send(id=request, result={"content": [
            {"type": "image", "data": "AAEC", "mimeType": arguments["type"]}]})
    if name == "data":
        return send(id=request, result=text("3", structuredContent={"sum": 3}))
    send(id=request, result=text(json.dumps({"name": name, "arguments": arguments})))


def read(request, uri):
    kind = uri.split("://")[0]
    if kind == "hang":
        return  # it is never answered
    if kind == "gone":
        return send(id=request, error={"code": -32002, "message": "no such note"})
    if kind == "closed":
        return send(id=request, error={"code": -32603, "message": "ask for hunter2-secret"})
    if kind == "refused":
        return send(id=request, error={"code": -32603, "message": HIDDEN})
    if kind == "bytes":
        return send(id=request, result={"contents": [{"uri": uri, "blob": "AAEC"}]})
    words = "x" * (5 << 20) if kind == "long" else HIDDEN if kind == "hidden" else f"{path} has {uri} and hunter2-secret"
    send(id=request, result={"contents": [{"uri": uri, "mimeType": "text/plain", "text": words}]})


# Calls that wait for an answer, by the ids of their questions.
asking = {}


def main():
    while (said := script()).get("waits"):
        time.sleep(0.02)
    if said.get("exit_at_start"):
        print("cannot start:", said["exit_at_start"], file=sys.stderr)
        sys.exit(7)
    log = open(path + ".log", "a")
    lists = 0
    for line in sys.stdin:
        message = json.loads(line)
        print(line.strip(), file=log, flush=True)
        method, request = message.get("method"), message.get("id")
        if method is None and request in asking:
            said_so = message.get("result", message.get("error"))
            send(id=asking.pop(request), result=text(json.dumps(said_so, sort_keys=True)))
            continue
        params = message.get("params") or {}
        if method == "initialize":
            if said.get("silent"):
                continue
            send(id=request, result={
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}, **said.get("capabilities", {})},
                "serverInfo": {"name": "scripted", "version": "1"},
            })
        elif method == "tools/list":
            said = script()
            if said.get("silent_list"):
                continue
            pages = said.get("pages") or [said["tools"]]
            at = int(params.get("cursor") or 0)
            more = {"nextCursor": str(at + 1)} if at + 1 < len(pages) else {}
            send(id=request, result={"tools": pages[at], **more})
        elif method == "tools/call":
            call(request, params["name"], params.get("arguments"), params.get("_meta") or {})
        elif method == "resources/list":
            if script().get("silent_resources"):
                continue
            send(id=request, result={"resources": script().get("resources", [])})
        elif method == "resources/templates/list":
            send(id=request, result={"resourceTemplates": script().get("templates", [])})
        elif method == "prompts/list":
            prompts = script().get("prompts", [])
            if script().get("churns"):
                lists += 1
                prompts = [{"name": f"p{lists}"}]
            send(id=request, result={"prompts": prompts})
        elif method == "prompts/get":
            how = (params.get("arguments") or {}).get("language")
            if how == "crash":
                os._exit(3)
            if how == "hang":
                continue
            send(id=request, result={"description": "has hunter2-secret", "messages": [
                {"role": "user", "content": {"type": "text", "text":
                    f"{json.dumps(params, sort_keys=True)} hunter2-secret \u202e"}}]})
        elif method == "resources/read":
            read(request, params["uri"])
        elif method == "ping":
            send(id=request, result={})
        elif request is not None:
            send(id=request, error={"code": -32601, "message": "not here"})


main()

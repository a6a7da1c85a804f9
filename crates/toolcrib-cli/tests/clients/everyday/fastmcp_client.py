"""An everyday conversation of the FastMCP client with a server; `everyday.rs` says what it is given and
has to print."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import MCPError


async def main(request: dict) -> dict:
    server = request["server"]
    if "url" in server:
        headers = {"Authorization": f"Bearer {server['token']}"}
        transport = StreamableHttpTransport(server["url"], headers=headers)
    else:
        transport = StdioTransport(server["command"], server["args"], keep_alive=False)
    changed = asyncio.Event()

    async def hear(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            changed.set()

    mode = {"handshake": "legacy", "stateless": "2026-07-28"}[request["era"]]
    async with Client(transport, mode=mode, timeout=30, message_handler=hear) as client:

        async def names() -> list[str]:
            return [tool.name for tool in await client.list_tools()]

        async def call(name: str, arguments: dict, **more) -> dict:
            try:
                return {"result": dump(await client.call_tool_mcp(name, arguments, **more))}
            except MCPError as error:
                return {"error": dump(error.error)}

        seen = {"protocol_version": client.protocol_version}
        while request["awaited"] not in (tools := await names()):
            await asyncio.sleep(0.05)
        seen["tools"] = tools
        seen["replies"] = [await call(**one) for one in request["calls"]]

        told = []

        async def progress(progress, total, message):
            told.append({"progress": progress, "total": total, "message": message})

        seen["slow"] = await call(**request["slow"], progress_handler=progress)
        seen["progress"] = told

        running = asyncio.create_task(call(**request["endless"]))
        while not Path(request["begun"]).exists():
            await asyncio.sleep(0.02)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        seen["cancelled"] = running.cancelled()

        async with contextlib.AsyncExitStack() as stack:
            if request["era"] == "stateless":
                # The client has no word of its own for it; the session below it has.
                from mcp.client.subscriptions import listen

                listening = listen(client.session, tools_list_changed=True)
                changes = aiter(await stack.enter_async_context(listening))
            Path(request["file"]).write_text(request["text"])
            while request["late"] not in (tools := await names()):
                # Every look after the first is one that the server has asked for.
                if request["era"] == "stateless":
                    await anext(changes)
                else:
                    await changed.wait()
                    changed.clear()
        seen["tools_after"] = tools
        seen["after"] = await call(**request["calls"][0])
        return seen


def dump(model) -> dict:
    """The model as it looks on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


request = json.loads(sys.argv[1])
print(json.dumps(asyncio.run(asyncio.wait_for(main(request), 50))))

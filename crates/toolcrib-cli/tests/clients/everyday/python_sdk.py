"""An everyday conversation of the Python MCP SDK with a server; `everyday.rs` says what it is given and
has to print."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main(request: dict) -> dict:
    server = request["server"]
    if "url" not in server:
        return await converse(StdioServerParameters(**server), request)
    headers = {"Authorization": f"Bearer {server['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        return await converse(streamable_http_client(server["url"], http_client=http), request)


async def converse(server, request: dict) -> dict:
    changed = asyncio.Event()

    async def hear(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            changed.set()

    mode = {"handshake": "legacy", "stateless": "2026-07-28"}[request["era"]]
    async with Client(server, mode=mode, read_timeout_seconds=30, message_handler=hear) as client:

        async def names() -> list[str]:
            return [tool.name for tool in (await client.list_tools()).tools]

        async def call(name: str, arguments: dict, **more) -> dict:
            try:
                return {"result": dump(await client.call_tool(name, arguments, **more))}
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

        seen["slow"] = await call(**request["slow"], progress_callback=progress)
        seen["progress"] = told

        running = asyncio.create_task(call(**request["endless"]))
        await until(Path(request["begun"]).exists)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        seen["cancelled"] = running.cancelled()

        async with contextlib.AsyncExitStack() as stack:
            if request["era"] == "stateless":
                listening = client.listen(tools_list_changed=True)
                changes = aiter(await stack.enter_async_context(listening))
            save(request)
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


async def until(holds):
    while not holds():
        await asyncio.sleep(0.02)


def save(request: dict):
    Path(request["file"]).write_text(request["text"])


def dump(model) -> dict:
    """The model as it looks on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


request = json.loads(sys.argv[1])
print(json.dumps(asyncio.run(asyncio.wait_for(main(request), 50))))

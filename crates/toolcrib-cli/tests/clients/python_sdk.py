"""One conversation of the Python MCP SDK with a server.

Usage: python_sdk.py REQUEST, where REQUEST is JSON:

    {"server": {"command": "…", "args": ["…"]}  or  {"url": "http://…", "token": "…"},
     "mode": "legacy"  (begin with `initialize`)  or  "auto"  (`server/discover`, else "legacy"),
     "calls": [{"name": "…", "arguments": {…}}, …]}

Prints what the SDK saw as one JSON document: either

    {"protocol_version": "…", "tools": […], "replies": [{"result": …} or {"error": …}, …]}

or, when the conversation could not begin, {"refused": "…"}; over HTTP both have "statuses", the
HTTP status of every answer.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main(request: dict) -> dict:
    server = request["server"]
    if "url" not in server:
        return await converse(StdioServerParameters(**server), request)

    statuses = []

    async def note_status(response):
        statuses.append(response.status_code)

    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {server['token']}"},
        event_hooks={"response": [note_status]},
        timeout=30,
    ) as http:
        transport = streamable_http_client(server["url"], http_client=http)
        seen = await converse(transport, request)
    return seen | {"statuses": statuses}


async def converse(server, request: dict) -> dict:
    try:
        async with Client(server, mode=request["mode"], read_timeout_seconds=30) as client:
            tools = await client.list_tools()
            return {
                "protocol_version": client.protocol_version,
                "tools": [dump(tool) for tool in tools.tools],
                "replies": [await reply(client, **call) for call in request["calls"]],
            }
    except Exception as error:
        # The SDK's task groups wrap what went wrong, once per layer.
        while hasattr(error, "exceptions"):
            error = error.exceptions[0]
        if isinstance(error, MCPError):
            return {"refused": str(error)}
        raise


async def reply(client: Client, name: str, arguments: dict) -> dict:
    try:
        return {"result": dump(await client.call_tool(name, arguments))}
    except MCPError as error:
        return {"error": dump(error.error)}


def dump(model) -> dict:
    """The model as it looks on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))

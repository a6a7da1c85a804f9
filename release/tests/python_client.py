"""One conversation of the Python SDK with a server on standard input and output:
python_client.py COMMAND ARGUMENT… prints the answer of the calculator."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with Client(server, read_timeout_seconds=60) as client:
        answer = await client.call_tool("calculator", {"expression": "6 * 7"})
        print(answer.content[0].text)


asyncio.run(main())

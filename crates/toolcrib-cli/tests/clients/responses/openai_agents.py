"""A task of three turns with OpenAI's Agents SDK: `openai_agents.py responses|chat REQUEST`."""

import asyncio
import json
import sys

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI


@function_tool
def look(at: str) -> str:
    """Look."""
    return "a tree"


async def main():
    mode, request = sys.argv[1], json.loads(sys.argv[2])
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=request["base_url"], api_key=request["token"], max_retries=0)
    kind = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}[mode]
    model = kind(model="default", openai_client=client)
    agent = Agent(name="task", model=model, tools=[look])
    texts, previous, session = [], None, SQLiteSession("task")
    for prompt in ["Hello.", "Say hi, and look at x.", "And again?"]:
        if mode == "responses":
            result = Runner.run_streamed(agent, prompt, previous_response_id=previous)
            async for _ in result.stream_events():
                pass
            previous = result.last_response_id
        else:
            result = await Runner.run(agent, prompt, session=session)
        texts.append(result.final_output)
    print(json.dumps({"texts": texts}))


asyncio.run(main())

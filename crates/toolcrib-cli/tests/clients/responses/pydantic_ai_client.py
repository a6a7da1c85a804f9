"""A task of three turns with pydantic-ai: `pydantic_ai_client.py responses|chat REQUEST`."""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

mode, request = sys.argv[1], json.loads(sys.argv[2])
provider = OpenAIProvider(base_url=request["base_url"], api_key=request["token"])
kind = {"responses": OpenAIResponsesModel, "chat": OpenAIChatModel}[mode]
agent = Agent(kind("default", provider=provider))


@agent.tool_plain
def look(at: str) -> str:
    """Look."""
    return "a tree"


texts, history = [], None
for prompt in ["Hello.", "Say hi, and look at x.", "And again?"]:
    result = agent.run_sync(prompt, message_history=history)
    history = result.all_messages()
    texts.append(result.output)
print(json.dumps({"texts": texts}))

"""A task of three turns with langchain-openai: `langchain_client.py responses|chat REQUEST`."""

import json
import sys

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def look(at: str) -> str:
    """Look."""
    return "a tree"


mode, request = sys.argv[1], json.loads(sys.argv[2])
model = ChatOpenAI(
    model="default",
    base_url=request["base_url"],
    api_key=request["token"],
    max_retries=0,
    use_responses_api=mode == "responses",
).bind_tools([look])
texts, messages = [], []
for prompt in ["Hello.", "Say hi, and look at x.", "And again?"]:
    messages.append(HumanMessage(prompt))
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            break
        for call in answer.tool_calls:
            messages.append(ToolMessage(look.invoke(call["args"]), tool_call_id=call["id"]))
    texts.append(answer.text if isinstance(answer.text, str) else answer.text())
print(json.dumps({"texts": texts}))

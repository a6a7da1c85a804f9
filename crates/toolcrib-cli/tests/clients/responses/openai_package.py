"""A task of three turns with the Python package `openai`: `openai_package.py whole|stream|socket REQUEST`."""

import json
import sys

from openai import OpenAI

LOOK = {
    "type": "function",
    "name": "look",
    "description": "Look.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}


def whole(client, **request):
    return client.responses.create(**request)


def stream(client, **request):
    # Accumulates the events itself and fails if they do not fit together.
    with client.responses.stream(**request) as events:
        for _ in events:
            pass
        return events.get_final_response()


def over(socket):
    def ask(_, **request):
        socket.response.create(**request)
        for event in socket:
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                return event.response
            if event.type == "error":
                raise RuntimeError(event.to_json())
        raise RuntimeError("the socket was closed")

    return ask


def task(client, ask):
    common = {"model": "default", "tools": [LOOK]}
    first = ask(client, input="Hello.", **common)
    second = ask(client, input="Say hi, and look at x.", previous_response_id=first.id, **common)
    ran = [item for item in second.output if item.type == "mcp_call"]
    assert [(item.name, item.output) for item in ran] == [("say", "heard: hi\n")], second
    outputs = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "a tree"}
        for item in second.output
        if item.type == "function_call"
    ]
    second = ask(client, input=outputs, previous_response_id=second.id, **common)
    third = ask(client, input="Note it.", previous_response_id=second.id, **common)
    (asked,) = [item for item in third.output if item.type == "mcp_approval_request"]
    assert (asked.name, json.loads(asked.arguments)) == ("note", {"text": "a tree"}), asked
    decision = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    third = ask(client, input=[decision], previous_response_id=third.id, **common)
    return [response.output_text for response in (first, second, third)]


def main():
    mode, request = sys.argv[1], json.loads(sys.argv[2])
    client = OpenAI(base_url=request["base_url"], api_key=request["token"], max_retries=0)
    if mode == "socket":
        with client.responses.connect() as socket:
            texts = task(client, over(socket))
    else:
        texts = task(client, {"whole": whole, "stream": stream}[mode])
    print(json.dumps({"texts": texts}))


main()

"""Answers the conformance suite's tools that tell progress, ask questions, or return more than text.

Each tool has a worker of its own; all of them run this file. A tool is a function of its call: it returns
the members of the answer's line, or of a question's.
"""

import base64
import json
import pathlib
import sys
import threading
import time

LOCK = threading.Lock()
# How long something takes that is not a task at once.
A_WHILE = 0.3
STARTED = ["Tool execution started", "Tool processing data", "Tool execution completed"]
# A WAV file without a sample.
WAV = (
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0"
    b"\x02\0\x10\0data\0\0\0\0"
)
TOOLS = {}


def say(call, **line):
    with LOCK:
        print(json.dumps({"id": call["id"], **line}), flush=True)


def tool(function):
    TOOLS[function.__name__] = function
    return function


def block(kind, data, mime_type):
    return {"type": kind, "data": base64.b64encode(data).decode(), "mimeType": mime_type}


def file(uri, text, mime_type):
    return {"type": "resource", "resource": {"uri": uri, "text": text, "mimeType": mime_type}}


def picture():
    return block("image", pathlib.Path("pixel.png").read_bytes(), "image/png")


def narrate(call, messages):
    for done, message in zip((0, 50, 100), messages):
        say(call, progress=done, total=100, message=message)
        time.sleep(0.05)


def form(properties, *required):
    return {"type": "object", "properties": properties, "required": list(required)}


def question(key, message, name, kind):
    return {"key": key, "message": message, "schema": form({name: {"type": kind}}, name)}


def who(key="user_name", message="What is your name?", **options):
    return {**question(key, message, "name", "string"), **options}


def sample(key, prompt, max_tokens, **options):
    return {"key": key, "kind": "sample", "prompt": prompt, "max_tokens": max_tokens, **options}


def compact(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


@tool
def test_image_content(call):
    return {"content": [picture()]}


@tool
def test_audio_content(call):
    return {"content": [block("audio", WAV, "audio/wav")]}


@tool
def test_embedded_resource(call):
    text = "This is an embedded resource content."
    return {"content": [file("test://embedded-resource", text, "text/plain")]}


@tool
def test_multiple_content_types(call):
    data = file("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return {"output": "Multiple content types test:", "content": [picture(), data]}


@tool
def test_tool_with_logging(call):
    narrate(call, STARTED)
    return {"output": "logged"}


@tool
def test_logging_tool(call):
    narrate(call, STARTED)
    return {"output": "logged"}


@tool
def test_tool_with_progress(call):
    narrate(call, ["begun", "half of it", "all of it"])
    return {"output": "done"}


@tool
def test_sampling(call):
    if "answer" not in call:
        return {"ask": [sample("sampled", call["arguments"]["prompt"], 100)]}
    return {"output": f"LLM response: {call['answer']['sampled']['text']}"}


@tool
def test_elicitation(call):
    if "answer" not in call:
        texts = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        schema = form(texts, "username", "email")
        return {"ask": {"message": call["arguments"]["message"], "schema": schema}}
    return {"output": f"User response: {compact(call['answer'])}"}


def choose(call, properties):
    if "answer" not in call:
        schema = {"type": "object", "properties": properties}
        return {"ask": {"message": "Please choose", "schema": schema}}
    answer = compact(call["answer"])
    return {"output": f"Elicitation completed: action=accept, content={answer}"}


@tool
def test_elicitation_sep1034_defaults(call):
    status = {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}
    return choose(call, {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": status,
        "verified": {"type": "boolean", "default": True},
    })


@tool
def test_elicitation_sep1330_enums(call):
    def titled(title):
        names = zip(("value1", "value2", "value3"), ("First", "Second", "Third"))
        return [{"const": value, "title": f"{name} {title}"} for value, name in names]

    options = ["option1", "option2", "option3"]
    return choose(call, {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    })


@tool
def test_missing_capability(call):
    if "answer" not in call:
        return {"ask": [sample("sampled", "Say something.", 10)]}
    return {"output": "sampled"}


@tool
def test_streaming_elicitation(call):
    if "answer" not in call:
        say(call, message="about to ask")
        return {"ask": [who()]}
    return {"output": "answered"}


@tool
def test_input_required_result_elicitation(call):
    if "answer" not in call:
        return {"ask": [who()]}
    return {"output": f"Hello, {call['answer']['user_name']['name']}!"}


@tool
def test_input_required_result_sampling(call):
    if "answer" not in call:
        return {"ask": [sample("capital_question", "What is the capital of France?", 100)]}
    return {"output": call["answer"]["capital_question"]["text"]}


@tool
def test_input_required_result_list_roots(call):
    if "answer" not in call:
        return {"ask": [{"key": "client_roots", "kind": "roots"}]}
    return {"output": f"Roots: {compact(call['answer']['client_roots'])}"}


def confirm(call):
    if "remembered" not in call:
        return {"ask": [question("confirm", "Please confirm", "ok", "boolean")], "remember": "state-ok"}
    return {"output": call["remembered"]}


@tool
def test_input_required_result_request_state(call):
    return confirm(call)


@tool
def test_input_required_result_tampered_state(call):
    return confirm(call)


@tool
def test_input_required_result_multiple_inputs(call):
    if "answer" not in call:
        roots = {"key": "client_roots", "kind": "roots"}
        return {"ask": [who(), sample("greeting", "Generate a greeting", 50), roots]}
    return {"output": f"Got {compact(call['answer'])}"}


@tool
def test_input_required_result_multi_round(call):
    if "answer" not in call:
        return {"ask": [who("step1", "Step 1: What is your name?")]}
    if "remembered" not in call:
        color = question("step2", "Step 2: What is your favorite color?", "color", "string")
        return {"ask": [color], "remember": call["answer"]["step1"]["name"]}
    return {"output": f"{call['remembered']} likes {call['answer']['step2']['color']}"}


@tool
def test_input_required_result_capabilities(call):
    if "answer" not in call:
        greeting = sample("greeting", "Generate a greeting", 50, optional=True)
        return {"ask": [who(optional=True), greeting]}
    return {"output": f"Got {compact(call['answer'])}"}


@tool
def slow_compute(call):
    time.sleep(call["arguments"]["seconds"])
    return {"output": f"{call['arguments']['label']} computed"}


@tool
def failing_job(call):
    time.sleep(A_WHILE)
    return {"error": "the job has failed"}


@tool
def protocol_error_job(call):
    if "answer" not in call:
        time.sleep(A_WHILE)
        return {"ask": [{"key": "roots", "kind": "roots"}]}
    return {"output": "worked"}


@tool
def confirm_delete(call):
    if "answer" not in call:
        time.sleep(A_WHILE)
        return {"ask": [question("confirm", "Delete it?", "confirm", "boolean")]}
    return {"output": f"{call['arguments']['filename']}: {call['answer']['confirm']['confirm']}"}


@tool
def multi_input(call):
    if "answer" not in call:
        time.sleep(A_WHILE)
        one = question("one", "The first?", "confirm", "boolean")
        return {"ask": [one, question("other", "The second?", "confirm", "boolean")]}
    return {"output": f"Got {compact(call['answer'])}"}


@tool
def test_tool_with_task(call):
    if "answer" not in call:
        return {"ask": [who()]}
    time.sleep(A_WHILE)
    return {"output": f"Hello, {call['answer']['user_name']['name']}!"}


@tool
def test_reconnection(call):
    time.sleep(2)
    return {"output": "Reconnected"}


def answer(call):
    try:
        say(call, **TOOLS[call["tool"]](call))
    except Exception as problem:
        say(call, error=str(problem))


for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:
        say({"id": call["cancel"]}, error="cancelled")
    else:
        threading.Thread(target=answer, args=(call,), daemon=True).start()

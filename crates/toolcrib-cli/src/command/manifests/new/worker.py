#!/usr/bin/env python3
"""Answers the calls of {{name}}. Each line of standard input is a call, as a JSON object.

Standard output is only for lines of the protocol. Write logs to standard error.
"""

import collections
import json
import re
import sys


def say(call, **line):
    """Writes a line about a call.

    Before the answer, for clients that watch the call:
        say(call, progress=3, total=10, message="reading")
        say(call, chunk="a piece of output")
    The answer, with `output` (text), `data` (JSON), `content` (pictures, sounds, files) or `error`:
        say(call, output="done")
    A question instead of an answer; the call then comes again with `answer`:
        say(call, ask={"message": "Which one?", "schema": {...}})
    """
    print(json.dumps({"id": call["id"], **line}), flush=True)


def count(call):
    arguments = call["arguments"]
    words = re.findall(r"\w+", arguments["text"].lower())
    say(call, progress=1, total=2, message=f"{len(words)} words")
    frequent = collections.Counter(words).most_common(arguments["top"])
    say(call, data={"words": len(words), "frequent": [word for word, _ in frequent]})


for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:  # calls come one at a time: that one has been answered
        continue
    try:
        count(call)
    except Exception as problem:  # the model is told why a call has failed
        say(call, error=str(problem))

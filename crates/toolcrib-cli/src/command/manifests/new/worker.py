#!/usr/bin/env python3
"""Answers the calls of {{name}}: one JSON object per line comes in, one goes out.

Standard output is for answers only; notes go to standard error.
"""

import collections
import json
import re
import sys


def answer(arguments):
    words = re.findall(r"\w+", arguments["text"].lower())
    frequent = collections.Counter(words).most_common(arguments["top"])
    return {"words": len(words), "frequent": [word for word, _ in frequent]}


for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:  # calls come one at a time: that one has been answered
        continue
    try:
        reply = {"data": answer(call["arguments"])}
    except Exception as problem:  # the model is told why a call has failed
        reply = {"error": str(problem)}
    print(json.dumps({"id": call["id"], **reply}), flush=True)

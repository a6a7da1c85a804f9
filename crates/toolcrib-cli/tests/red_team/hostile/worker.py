"""A worker that has turned hostile: it does the deed of each call."""
import contextlib
import io
import json
import os
import sys

# `deeds.py` stands before this text.
for line in sys.stdin:
    call = json.loads(line)
    if "arguments" not in call:
        continue
    said = io.StringIO()
    folder = os.getcwd()
    with contextlib.redirect_stdout(said):
        try:
            do(call["arguments"]["deed"], json.loads(call["arguments"]["facts"]))
        except BaseException as error:
            print("the deed failed:", error)
    attempt("back", os.chdir, folder)
    answer = {"id": call["id"], "output": said.getvalue()}
    sys.__stdout__.write(json.dumps(answer) + "\n")
    sys.__stdout__.flush()

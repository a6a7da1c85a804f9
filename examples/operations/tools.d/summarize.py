#!/usr/bin/env python3
import json
import sys

values = {}
for one in json.load(sys.stdin):
    values.setdefault(one["name"], []).append(one["value"])
print(json.dumps({name: sum(of) / len(of) for name, of in values.items()}))

#!/usr/bin/env python3
import json
import sys

asked = json.load(sys.stdin)
days = (100 - asked["used_percent"]) / asked["growth_per_day"]
late = days > asked["horizon_days"]
print(json.dumps({"full_in_days": round(days, 1), "act_now": not late}))

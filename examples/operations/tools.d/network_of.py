import ipaddress
import json
import sys

NETWORKS = {"office": "10.20.0.0/16", "cluster": "10.96.0.0/12", "home": "192.168.0.0/16"}

for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:  # one call at a time: it was answered before
        continue
    address = ipaddress.ip_address(call["arguments"]["address"])
    found = [name for name, net in NETWORKS.items() if address in ipaddress.ip_network(net)]
    answer = {"data": {"network": found[0] if found else "none of ours"}}
    print(json.dumps({"id": call["id"], **answer}), flush=True)

"""A task of three turns with `codex exec`, whose own tool runs a command: `codex.py PACKAGES WEBSOCKETS REQUEST`.

Codex knows no approvals of other programs' calls, so it is not asked for one.
"""

import glob
import json
import os
import subprocess
import sys

CONFIG = """
model = "default"
model_provider = "toolcrib"
approval_policy = "never"
sandbox_mode = "danger-full-access"
# The agent has no web search, which codex would ask of the server.
web_search = "disabled"

[model_providers.toolcrib]
name = "toolcrib"
base_url = "{base_url}"
env_key = "TOOLCRIB_TOKEN"
wire_api = "responses"
supports_websockets = {websockets}

[analytics]
enabled = false
"""


def main():
    packages, websockets, request = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    # The program itself, without the script in node that starts it.
    (codex,) = glob.glob(packages + "/codex-*/vendor/*/bin/codex")
    folder = request["folder"]
    with open(folder + "/config.toml", "w") as config:
        config.write(CONFIG.format(base_url=request["base_url"], websockets=websockets))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "CODEX_HOME": folder,
        "TOOLCRIB_TOKEN": request["token"],
    }
    texts = []
    for number, prompt in enumerate(["Hello.", "Say hi, and look.", "And again?"]):
        last = f"{folder}/last{number}"
        command = [codex, "exec"]
        options = ["--skip-git-repo-check", "--output-last-message", last]
        command += options + [prompt] if number == 0 else ["resume", "--last"] + options + [prompt]
        done = subprocess.run(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=50,
        )
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        sys.stderr.write(done.stderr)
        with open(last) as text:
            texts.append(text.read().strip())
    print(json.dumps({"texts": texts}))


main()

"""`fetch_page` beside trafilatura: the words of pages that break extractors, from a server on loopback.

usage: extract.py PROGRAM FOLDER

For each page, F is the harmonic mean of precision and recall of the words (each as often as it occurs; each character of
Chinese and Japanese is a word) against the text that a reader wants. Words of the headline and of markup do not count.
The part passes if the mean of PROGRAM is at most two points below that of trafilatura, as text and as Markdown.
"""

import collections
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

import trafilatura
from pages import PAGES

POINTS = 0.02
WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u4e00-\u9fff]+")
OURS_BEFORE_THE_TEXT = re.compile(r"\A((Title|By|Published): .*\n)+\n?")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = PAGES[int(self.path.strip("/"))] if self.path.strip("/").isdigit() else None
        self.send_response(200 if page else 404)
        body = page.body if page else b""
        self.send_header("Content-Type", page.content_type if page else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def words(text, is_markdown=False):
    if is_markdown:
        text = re.sub(r"\]\([^)\s]*\)", "]", text)
        text = re.sub(r"^```\w+$", "", text, flags=re.M)
    return [word.lower() for word in WORD.findall(text)]


def f_measure(text, page, is_markdown):
    # The headline, where it is the first line.
    first, _, rest = text.strip().partition("\n")
    if words(first) == words(page.title):
        text = rest
    found = collections.Counter(words(text, is_markdown))
    wanted = collections.Counter(words(page.wanted))
    common = sum((found & wanted).values())
    if not common:
        return 0.0
    precision, recall = common / sum(found.values()), common / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)


def ours(program, folder, url, form):
    command = [program, "call", "--config", "config.yml", "fetch_page", f"url={url}", f"extract_type={form}", "--json"]
    run = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    answer = json.loads(run.stdout)
    if not answer["success"]:
        print(f"  {url}: {json.dumps(answer)[:300]}")
        return ""
    if answer["truncated"]:
        raise RuntimeError("the answer is cut")
    text = answer["output"].split("\n", 1)[1].rsplit("\n", 1)[0]
    return OURS_BEFORE_THE_TEXT.sub("", text)


def theirs(url, form):
    # trafilatura looks for the encoding in the bytes; what the header says is for who fetches.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=60) as answer:
        text, encoding = answer.read(), answer.headers.get_content_charset()
    text = text.decode(encoding) if encoding else text
    output = {"text": "txt", "markdown": "markdown"}[form]
    return trafilatura.extract(text, url=url, output_format=output, include_comments=False, include_links=form == "markdown") or ""


def main():
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.yml"), "w") as config:
        config.write("web: {allow_private: [127.0.0.1/32]}\noutput: {max_chars: 20000000}\n")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    passed = failed = 0
    try:
        for form in ["text", "markdown"]:
            print(f"{form:30}{'toolcrib':>10}{'trafilatura':>13}")
            all_ours, all_theirs = [], []
            for number, page in enumerate(PAGES):
                url = f"http://127.0.0.1:{server.server_port}/{number}"
                texts = ours(program, folder, url, form), theirs(url, form)
                if os.environ.get("EXTRACT_TEXTS"):
                    for who, text in zip(["toolcrib", "trafilatura"], texts):
                        with open(os.path.join(os.environ["EXTRACT_TEXTS"], f"{number}-{form}-{who}"), "w") as out:
                            out.write(text)
                own, other = (f_measure(text, page, form == "markdown") for text in texts)
                print(f"  {page.name:28}{own:10.3f}{other:13.3f}")
                all_ours.append(own)
                all_theirs.append(other)
            mean, other = sum(all_ours) / len(PAGES), sum(all_theirs) / len(PAGES)
            print(f"  {'mean':28}{mean:10.3f}{other:13.3f}\n")
            passed, failed = (passed + 1, failed) if mean >= other - POINTS else (passed, failed + 1)
    finally:
        server.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())

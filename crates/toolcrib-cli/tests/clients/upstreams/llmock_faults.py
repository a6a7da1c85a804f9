"""Faults of llmock, and its verdict on `toolcrib run`. `mod.rs` says what this file is given."""

import json
import os
import subprocess
from pathlib import Path

import pytest

REQUEST = json.loads(os.environ["LLMOCK_REQUEST"])
WIRE = REQUEST["wire"]
NOTES = Path(REQUEST["folder"], "notes.txt")
# Anthropic's status of an overloaded server.
OVERLOADED = 529 if WIRE == "anthropic" else 503


@pytest.fixture
def agent(llmock):
    """Runs the agent; asserts its exit code, and how often the call that the model makes has run."""
    config = REQUEST["config"]
    base = llmock.base_url("anthropic") + "/v1" if WIRE == "anthropic" else llmock.base_url()
    config["providers"]["upstream"]["base_url"] = base
    Path(REQUEST["folder"], "config.yml").write_text(json.dumps(config))
    NOTES.unlink(missing_ok=True)

    def run(code=0, notes=1):
        ended = subprocess.run(
            [REQUEST["program"], "run", "Note something."],
            cwd=REQUEST["folder"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert ended.returncode == code, ended.stderr
        assert bool(ended.stdout.strip()) == (code == 0), ended.stdout
        written = NOTES.read_text().splitlines() if NOTES.exists() else []
        assert len(written) == notes, (written, ended.stderr)
        llmock.assert_resilient(strict=True)
        return ended.stderr

    return run


def test_an_ordinary_run(llmock, agent):
    agent()
    assert len(llmock.requests) == 2


def test_a_rate_limit_is_waited_for(llmock, agent):
    llmock.rate_limit(retry_after=1)
    agent()
    assert llmock.verdict().faults == 1


@pytest.mark.parametrize("status, times", [(500, 1), (OVERLOADED, 2)])
def test_errors_of_the_server_pass(llmock, agent, status, times):
    llmock.fail(status, times=times)
    agent()
    assert llmock.verdict().faults == times


@pytest.mark.parametrize("chunks", [0, 3])
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "corrupt"])
def test_a_broken_stream_is_asked_for_again_and_no_call_of_it_runs(llmock, agent, kind, chunks):
    llmock.call_tool("note", {"text": "Something."}, times=2)
    if kind == "corrupt":
        # The verdict wants to see the client hang up before the end.
        llmock.pace(40)
    getattr(llmock, kind)(after_chunks=chunks)
    agent()
    assert llmock.verdict().faults == 1
    assert NOTES.read_text() == "Something.\n"


def test_a_stream_that_hangs_is_given_up(llmock, agent):
    llmock.stall(after_chunks=2, seconds=20)
    agent()
    assert llmock.verdict().faults == 1


def test_an_outage_fails_the_run_after_some_attempts(llmock, agent):
    llmock.outage(status=OVERLOADED)
    agent(code=1, notes=0)
    assert 2 <= llmock.verdict().attempts <= 10


@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_cannot_succeed_is_not_tried_again(llmock, agent, status):
    llmock.fail(status, message="Not like this.", times=None)
    assert "Not like this." in agent(code=1, notes=0)
    assert len(llmock.requests) == 1


def test_a_full_context_is_reported(llmock, agent):
    llmock.context_overflow(times=None)
    agent(code=1, notes=0)
    assert len(llmock.requests) == 1


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_broken_call_does_not_run_and_its_refusal_is_sent_back(llmock, agent, kind):
    llmock.break_tool_call(kind)
    agent(notes=0)
    assert len(llmock.requests) == 2

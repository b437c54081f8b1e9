"""What the scripts beside this file share: the cases that they are given, and how they say what came of each.

A script is given one JSON object: `way` says how to reach the server, `cases` what to call. It prints one JSON line for
each thing that it saw; the test that started it knows what is right.
"""

import asyncio
import json
import sys


def say(what: str, **facts) -> None:
    print(json.dumps({"what": what, **facts}), flush=True)


def result(content, structured, is_error) -> dict:
    """A result of a tool as the client shows it."""
    return {
        "end": "result",
        "isError": bool(is_error),
        "kinds": [block.type for block in content],
        "texts": [block.text for block in content if block.type == "text"],
        "structured": structured,
    }


def error(error) -> dict:
    """An error that answers a request."""
    return {"end": "error", "code": error.code, "reason": (error.data or {}).get("reason")}


def failed(error: dict) -> dict:
    """The error of a task."""
    return {"end": "failed", "code": error["code"], "reason": (error.get("data") or {}).get("reason")}


def run(main) -> None:
    given = json.loads(sys.argv[1])
    asyncio.run(main(given["way"], given["cases"]))

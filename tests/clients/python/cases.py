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


async def library(resources, templates, prompts, read, get, complete) -> None:
    """What there is to read and to fill in. The last three are asked for one thing each."""
    from mcp import types
    from mcp.shared.exceptions import MCPError

    (listed,), (dish,) = await read("recipe:all"), await read("recipe:omelette")
    try:
        await read("recipe:gruel")
        missing = None
    except MCPError as failed:
        missing = failed.error.code
    prompt = await get("plan-meal", {"dish": "omelette"})
    of_prompt = types.PromptReference(type="ref/prompt", name="plan-meal")
    of_template = types.ResourceTemplateReference(type="ref/resource", uri="recipe:{dish}")
    say(
        "library",
        resources=[str(resource.uri) for resource in resources],
        templates=[template.uri_template for template in templates],
        prompts=[prompt.name for prompt in prompts],
        read=[str(listed.uri), listed.mime_type, listed.text, dish.text],
        missing=missing,
        prompt=[[message.role, message.content.text] for message in prompt.messages],
        proposed=[
            await complete(of_prompt, {"name": "dish", "value": "p"}),
            await complete(of_template, {"name": "dish", "value": "o"}),
        ],
    )


def run(main) -> None:
    given = json.loads(sys.argv[1])
    asyncio.run(main(given["way"], given["cases"]))

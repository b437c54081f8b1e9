"""Drives a server with the client of fastmcp, which fastmcp-tasks teaches tasks as soon as it is imported."""

from importlib.metadata import version

import cases
import fastmcp_tasks
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError


class Answers:
    """Answers a question as the case says."""

    def __init__(self):
        self.case = {}

    async def __call__(self, message, response_type, params, context):
        return ElicitResult(**self.case["answer"])


def connect(way, answers) -> Client:
    if "url" in way:
        server = way["url"]
    else:
        server = StdioTransport(command=way["command"], args=way["arguments"], keep_alive=False)
    return Client(server, mode=way["mode"], elicitation_handler=answers)


async def follow(client, case) -> dict:
    """Calls a tool and has the client follow the task without a word of it to its caller."""
    try:
        result = await client.call_tool(case["tool"], case["arguments"], meta=case["meta"], raise_on_error=False)
        return cases.result(result.content, result.structured_content, result.is_error)
    except MCPError as failed:
        return cases.error(failed.error)


async def handle(client, case) -> dict:
    """Calls a tool for a handle of its task, which shows what a followed call hides and can be cancelled."""
    task = await fastmcp_tasks.call_tool_task(client, case["tool"], case["arguments"], meta=case["meta"])
    seen = [task.create_result.status]
    if case["cancel"]:
        await task.cancel()
    ended = await task.wait(timeout=60)
    seen.append(ended.status)
    told = cases.failed(ended.error) if ended.status == "failed" else {"end": ended.status}
    return {**told, "seen": seen}


async def lacks(client, given) -> None:
    if not hasattr(client, "listen"):
        cases.say("lacks", feature="subscriptions/listen: it polls")
    failing = next(case for case in given if case["what"] == "failed")
    try:
        await client.call_tool(failing["tool"], failing["arguments"], meta=failing["meta"])
    except ToolError as error:
        assert not hasattr(error, "data") and not hasattr(error, "code"), vars(error)
        cases.say("lacks", feature="code and data of a failed task whose call it follows: the message only")


async def library(client) -> None:
    async def complete(of, argument):
        return (await client.complete(of, argument)).values

    await cases.library(
        await client.list_resources(),
        await client.list_resource_templates(),
        await client.list_prompts(),
        client.read_resource,
        client.get_prompt,
        complete,
    )


async def main(way, given) -> None:
    answers = Answers()
    async with connect(way, answers) as client:
        cases.say(
            "client",
            name=f"fastmcp {version('fastmcp')} with fastmcp-tasks {version('fastmcp-tasks')}",
            revision=client.protocol_version,
            server=client.server_info.name,
        )
        cases.say("list", tools=[tool.name for tool in await client.list_tools()])
        await library(client)
        for case in given:
            answers.case = case
            is_session = way["mode"] == "legacy"
            by = handle if (case["cancel"] or case["what"] == "failed") and not is_session else follow
            cases.say(case["what"], **await by(client, case))
        if not is_session:
            await lacks(client, given)


cases.run(main)

"""Drives a server with the client of the Python SDK.

The SDK knows no tasks; the extension below teaches it the little that is needed.
"""

import asyncio
import inspect
from importlib.metadata import version
from typing import Any, Literal

import cases
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError

TASKS = "io.modelcontextprotocol/tasks"


class Created(types.Result):
    model_config = {"extra": "allow"}
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class Detailed(types.Result):
    model_config = {"extra": "allow"}
    task_id: str
    status: str
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class TaskParams(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


def request(name: str):
    class TaskRequest(types.Request[TaskParams, Literal[name]]):
        method: Literal[name] = name
        params: TaskParams
        name_param = "taskId"

    return TaskRequest


Get, Update, Cancel = (request(f"tasks/{verb}") for verb in ("get", "update", "cancel"))


class Ended(Exception):
    """A task without a result."""


class Tasks(ClientExtension):
    """Follows the task that a call became, as the case says."""

    identifier = TASKS

    def __init__(self):
        self.case, self.seen = {}, None

    def claims(self):
        return [ResultClaim(result_type="task", model=Created, resolve=self.drive)]

    async def drive(self, created, context):
        session = context.session
        self.seen = [created.status]
        if self.case["cancel"]:
            await session.send_request(Cancel(params=TaskParams(task_id=created.task_id)), types.Result)
        while True:
            task = await session.send_request(Get(params=TaskParams(task_id=created.task_id)), Detailed)
            if task.status != self.seen[-1]:
                self.seen.append(task.status)
            match task.status:
                case "completed":
                    return types.CallToolResult.model_validate(task.result)
                case "failed":
                    raise Ended(cases.failed(task.error))
                case "cancelled":
                    raise Ended({"end": "cancelled"})
                case "input_required":
                    answers = {key: self.case["answer"] for key in task.input_requests}
                    params = TaskParams(task_id=created.task_id, input_responses=answers)
                    await session.send_request(Update(params=params), types.Result)
            await asyncio.sleep(0.05)


async def never(context, params):
    raise AssertionError("questions come with their task, never as a request to the client")


def connect(way, **options) -> Client:
    if "url" in way:
        return Client(way["url"], mode=way["mode"], **options)
    server = StdioServerParameters(command=way["command"], args=way["arguments"])
    return Client(server, mode=way["mode"], **options)


async def call(client, tasks, case) -> None:
    tasks.case, tasks.seen = case, None
    try:
        result = await client.call_tool(case["tool"], case["arguments"], meta=case["meta"])
        told = cases.result(result.content, result.structured_content, result.is_error)
    except Ended as ended:
        (told,) = ended.args
    except MCPError as failed:
        told = cases.error(failed.error)
    cases.say(case["what"], **told, seen=tasks.seen)


async def library(client) -> None:
    async def read(uri):
        return (await client.read_resource(uri)).contents

    async def complete(of, argument):
        return (await client.complete(of, argument)).completion.values

    await cases.library(
        (await client.list_resources()).resources,
        (await client.list_resource_templates()).resource_templates,
        (await client.list_prompts()).prompts,
        read,
        client.get_prompt,
        complete,
    )


async def main(way, given) -> None:
    tasks = Tasks()

    async def answer(context, params):
        """In a session a question is a request to the client."""
        return types.ElicitResult.model_validate(tasks.case["answer"])

    is_session = way["mode"] == "legacy"
    async with connect(way, extensions=[tasks], elicitation_callback=answer if is_session else never) as client:
        cases.say(
            "client",
            name=f"mcp {version('mcp')}",
            revision=client.protocol_version,
            server=client.server_info.name,
        )
        tools = await client.list_tools()
        cases.say("list", tools=[tool.name for tool in tools.tools])
        await library(client)
        for case in given:
            await call(client, tasks, case)
    if is_session:
        return
    if "task_ids" not in inspect.signature(client.listen).parameters:
        cases.say("lacks", feature="task ids in subscriptions/listen: it polls")
    async with connect(way) as alone:
        result = await alone.call_tool("long-job", {"steps": 1, "step-ms": 1})
        assert result.content[0].text == "done: 1 steps", result
        cases.say("lacks", feature="tasks of its own: a call is held unless an extension is written for it")


cases.run(main)

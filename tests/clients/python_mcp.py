"""Drives a server with the client of the Python SDK and prints one JSON line for each thing it saw.

The SDK knows no tasks; the extension below teaches it the little that is needed.
"""

import asyncio
import json
import sys
from typing import Any, Literal

from mcp import Client, types
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError

TASKS = "io.modelcontextprotocol/tasks"
ENDED = {"completed", "failed", "cancelled"}


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


class Failed(Exception):
    """A task without a result."""


class Tasks(ClientExtension):
    identifier = TASKS

    def __init__(self, answer=None, cancel=False):
        self.answer, self.cancel, self.seen = answer, cancel, []

    def claims(self):
        return [ResultClaim(result_type="task", model=Created, resolve=self.drive)]

    async def drive(self, created, context):
        session = context.session
        self.seen = [created.status]
        if self.cancel:
            await session.send_request(Cancel(params=TaskParams(task_id=created.task_id)), types.Result)
        while True:
            task = await session.send_request(Get(params=TaskParams(task_id=created.task_id)), Detailed)
            if task.status != self.seen[-1]:
                self.seen.append(task.status)
            if task.status == "completed":
                return types.CallToolResult.model_validate(task.result)
            if task.status in ENDED:
                raise Failed(task.status, task.error)
            if task.status == "input_required":
                answers = {key: self.answer for key in task.input_requests}
                params = TaskParams(task_id=created.task_id, input_responses=answers)
                await session.send_request(Update(params=params), types.Result)
            await asyncio.sleep(0.05)


def say(what: str, **facts) -> None:
    print(json.dumps({"what": what, **facts}), flush=True)


async def call(url: str, what: str, tool: str, arguments: dict[str, Any], **tasks) -> None:
    extension = Tasks(**tasks)
    async with Client(url, extensions=[extension], elicitation_callback=never) as client:
        try:
            result = await client.call_tool(tool, arguments)
            texts = [block.text for block in result.content]
            say(what, texts=texts, isError=bool(result.is_error), seen=extension.seen)
        except Failed as failed:
            status, error = failed.args
            say(what, status=status, error=error, seen=extension.seen)
        except MCPError as failed:
            say(what, code=failed.error.code, data=failed.error.data)


async def never(context, params):
    raise AssertionError("questions come with their task, never as a request to the client")


async def main(url: str) -> None:
    async with Client(url, extensions=[Tasks()]) as client:
        tools = await client.list_tools()
        say("list", tools=[tool.name for tool in tools.tools])
    await call(url, "call", "hello", {"name": "Ada"})
    await call(url, "error", "tool-error", {"message": "no luck"})
    await call(url, "misfit", "hello", {"name": 7})
    await call(url, "broken", "panic", {})
    await call(url, "task", "long-job", {"steps": 3, "step-ms": 200})
    form = {"name": "Ada", "age": 36, "choice": "green"}
    await call(url, "accept", "ask-form", {}, answer={"action": "accept", "content": form})
    await call(url, "decline", "ask-form", {}, answer={"action": "decline"})
    await call(url, "cancel", "long-job", {"steps": 1000, "step-ms": 100}, cancel=True)
    # The server lets no task live longer than a few seconds.
    await call(url, "expire", "long-job", {"steps": 1000, "step-ms": 100})


asyncio.run(main(sys.argv[1]))

'''Write a Longshore tool in Python.

A tool is a function. Its type hints say what it takes, and its docstring is the description that models choose it by:

    from longshore import task, tool

    @tool(task_mode="always")
    def wait(seconds: float = 1) -> str:
        """Waits for a while.

        Args:
            seconds: For how long.
        """
        task.sleep(seconds)
        return "done"

It returns a text, or a dict, which is data for programs as well. `longshore.http` sends requests.

What it prints is kept for the operator; `task.log` reaches the client too. An exception is an answer that the model
can read, and its traceback is kept for the operator; `Failed` is one in the author's own words.
'''

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools as contract
from wit_world.imports import longshore_tool_types as types

from . import arguments as taken
from . import http, task

type Function = Callable[..., str | dict[str, Any]]

# JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's.
INVALID_PARAMS = -32602

# Where the files of this helper are, and beside it the author's.
_HELPER = __file__.removesuffix("__init__.py")
_APP = _HELPER.removesuffix("longshore/")


class Failed(Exception):
    """The tool did not manage, and the text is all that the model reads about it."""


_tools: dict[str, tuple[contract.Tool, list[taken.Argument], Function]] = {}

# A line is out once it is printed: an instance that died does not run again to flush it.
sys.stdout.reconfigure(line_buffering=True)


def tool(*, task_mode: str = "auto") -> Callable[[Function], Function]:
    """Makes a tool of a function. Its name has `-` for `_`; see `longshore.arguments` for what it may take."""

    def register(function: Function) -> Function:
        name = function.__name__.replace("_", "-")
        arguments = taken.of(function)
        if not function.__doc__:
            raise TypeError(f"the tool {name} needs a docstring: it is the description that models choose it by")
        description = contract.Tool(
            name=name,
            title=None,
            description=taken.description(function),
            input_schema=json.dumps(taken.schema(arguments)),
            output_schema=None,
            task_mode=contract.TaskMode[task_mode.replace("-", "_").upper()],
            requires=[],
            extra=None,
        )
        _tools[name] = (description, arguments, function)
        return function

    return register


class Tools(exports.Tools):
    """The component's export, over the functions that were made tools."""

    def list_tools(self) -> list[contract.Tool]:
        return [description for description, _, _ in _tools.values()]

    def call_tool(self, name: str, arguments: str) -> types.ToolResult:
        if name not in _tools:
            error = types.RpcError(INVALID_PARAMS, f"no tool {name} in this component", None)
            raise Err(types.CallError_Protocol(error))
        _, takes, function = _tools[name]
        try:
            answer = function(**taken.given(takes, json.loads(arguments)))
            if isinstance(answer, str):
                return _text(answer)
            if isinstance(answer, dict):
                data = json.dumps(answer)
                return types.ToolResult([types.Block_Text(data)], data, None)
            raise TypeError(f"{name} must return a text or a dict, and it returned {type(answer).__name__}")
        except task.Cancelled:
            raise Err(types.CallError_Cancelled()) from None
        except (Failed, task.AskError, http.Error) as error:
            raise _failed(str(error)) from None
        except Exception as error:
            traceback.print_exc()
            raise _failed(_last_words(error)) from None
        finally:
            # A line that was not ended, too.
            sys.stdout.flush()


def _last_words(error: Exception) -> str:
    """What went wrong, and the last place in the author's own files on the way there."""
    words = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(_APP) and not frame.filename.startswith(_HELPER)]
    if not own:
        return words
    return f"{words} ({own[-1].filename.removeprefix(_APP)}, line {own[-1].lineno})"


def _failed(text: str) -> Err[types.CallError]:
    return Err(types.CallError_Failed(_text(text)))


def _text(text: str) -> types.ToolResult:
    return types.ToolResult([types.Block_Text(text)], None, None)

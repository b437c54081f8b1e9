"""Write a Longshore tool in Python.

A tool is a function, and its docstring is the description that models choose it by:

    from longshore import task, tool

    @tool(task_mode="always")
    def wait() -> str:
        "Waits for a second."
        task.sleep(1)
        return "done"

What it prints is kept for the operator; `task.log` reaches the client too. An exception is an answer that the model
can read, and its traceback is kept for the operator.
"""

import json
import sys
import traceback
from collections.abc import Callable

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools as contract
from wit_world.imports import types

from . import task

type Function = Callable[[], str]

# JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's.
INVALID_PARAMS = -32602

# Where the files of this helper are, and beside it the author's.
_HELPER = __file__.removesuffix("__init__.py")
_APP = _HELPER.removesuffix("longshore/")

_tools: dict[str, tuple[contract.Tool, Function]] = {}

# A line is out once it is printed: an instance that died does not run again to flush it.
sys.stdout.reconfigure(line_buffering=True)


def tool(*, task_mode: str = "auto") -> Callable[[Function], Function]:
    """Makes a tool of a function without arguments that returns a text. Its name has `-` for `_`."""

    def register(function: Function) -> Function:
        name = function.__name__.replace("_", "-")
        code = function.__code__
        if code.co_argcount or code.co_kwonlyargcount:
            raise TypeError(f"the tool {name} takes arguments, which this helper cannot pass yet: leave them out")
        if not function.__doc__:
            raise TypeError(f"the tool {name} needs a docstring: it is the description that models choose it by")
        description = contract.Tool(
            name=name,
            title=None,
            description=function.__doc__.strip(),
            input_schema=json.dumps({"type": "object", "properties": {}}),
            output_schema=None,
            task_mode=contract.TaskMode[task_mode.replace("-", "_").upper()],
            requires=[],
            extra=None,
        )
        _tools[name] = (description, function)
        return function

    return register


class Tools(exports.Tools):
    """The component's export, over the functions that were made tools."""

    def list_tools(self) -> list[contract.Tool]:
        return [description for description, _ in _tools.values()]

    def call_tool(self, name: str, arguments: str) -> types.ToolResult:
        if name not in _tools:
            error = types.RpcError(INVALID_PARAMS, f"no tool {name} in this component", None)
            raise Err(types.CallError_Protocol(error))
        _, function = _tools[name]
        try:
            answer = function()
            if isinstance(answer, str):
                return _text(answer)
            raise TypeError(f"{name} must return a text, and it returned {type(answer).__name__}")
        except task.Cancelled:
            raise Err(types.CallError_Cancelled()) from None
        except task.AskError as error:
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

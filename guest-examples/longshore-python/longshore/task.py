"""The call that is running, and what it can tell and ask."""

import json
import math
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world.imports import task as host


class Cancelled(Exception):
    """The call was cancelled: clean up and let it pass."""


class AskError(Exception):
    """There is no answer, and the text says why."""


class Unsupported(AskError):
    """The client of this call cannot be asked this."""


def status(message: str) -> None:
    """Says in a few words what the call is doing now."""
    host.set_status(message)


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Says how far the call is, in any unit. It is not a status: set one if people are to read it."""
    host.report_progress(done, total, message)


def log(message: str, level: str = "info") -> None:
    """Writes to the log of the call: the operator's, and the client's if it asked for this level."""
    host.log(host.Level[level.upper()], None, message)


def sleep(seconds: float) -> None:
    """Waits without using up CPU, unless a cancel wakes it: then it raises `Cancelled`.

    Prefer it to `time.sleep`, which a cancel does not wake.
    """
    # Rounded up, so that a wait is never shorter than asked for.
    if not host.sleep(math.ceil(seconds * 1000)):
        raise Cancelled


def is_cancelled() -> bool:
    """Whether the call was cancelled. Whoever looks now and then has a moment to clean up when it is."""
    return host.is_cancelled()


def check_cancelled() -> None:
    """Raises `Cancelled` if the call was cancelled."""
    if host.is_cancelled():
        raise Cancelled


def step[T](name: str, work: Callable[[], T]) -> T:
    """Does a piece of work that is not done again once it is done, even if the process dies, and gives what it gave.

    That must have a JSON form and be all that the work leaves behind: within it no question is asked, no request left
    open, and no file written. Steps do not nest; one whose work raises is done again when the call is.
    """
    recorded = host.step_begin(name)
    if recorded is not None:
        return json.loads(recorded)
    value = json.dumps(work())
    host.step_end(name, value.encode())
    # As it comes back the next time, so that nothing depends on whether it was done before.
    return json.loads(value)


def ask(key: str, message: str, fields: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Shows a form of these fields, each a flat JSON Schema and all of them required, and waits for the answer.

    None if the person declined or closed it. `Cancelled` if the call was cancelled, `AskError` if there is no answer.
    """
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    try:
        answer = host.ask(key, host.Question_Form(host.Form(message, json.dumps(schema))), None)
    except Err as error:
        raise _no_answer(error.value) from None
    if isinstance(answer, host.Answer_Accepted):
        return json.loads(answer.value or "{}")
    return None


def _no_answer(error: host.AskError) -> Exception:
    match error:
        case host.AskError_CallCancelled():
            return Cancelled()
        case host.AskError_TimedOut():
            return AskError("nobody answered the question in time")
        case host.AskError_Unsupported(value=why):
            return Unsupported(f"this client cannot be asked: {why}")
        case host.AskError_Invalid(value=why):
            return AskError(f"the question is malformed: {why}")
        case host.AskError_Limit(value=why):
            return AskError(f"the question is over a limit: {why}")

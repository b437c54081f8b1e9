"""Runs code that somebody else wrote, a model mostly. Each call is a sandbox of its own: what the code breaks in here is
gone with it, and what it takes is bounded by the host."""

import ast
import contextlib
import io
import json
import traceback
from typing import Any

# There is no file that more could be imported from later, so what code may want is here from the beginning.
import array, base64, bisect, calendar, cmath, collections, colorsys, copy, csv, dataclasses  # noqa: E401, F401
import datetime, decimal, difflib, enum, fractions, functools, graphlib, hashlib, heapq, hmac, html  # noqa: E401, F401
import html.parser, itertools, math, numbers, operator, pprint, random, re, secrets, statistics, string  # noqa: E401, F401
import struct, textwrap, time, types, typing, unicodedata, urllib.parse, uuid, xml.etree.ElementTree, zlib  # noqa: E401, F401

from longshore import Failed, tool

# What tracebacks call the given code.
GIVEN = "<code>"


@tool()
def run_python(code: str) -> dict[str, Any]:
    """Runs Python code. Gives the value of its last expression, and what it printed.

    A value that has no JSON form is given as its `repr`. Much of the standard library can be imported; there are no
    files and no network, and nothing is kept from one call to the next.

    Args:
        code: The code. End it with an expression to see its value.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            value = run(ast.parse(code, GIVEN))
            # Within, since the code may have made the object that is shown.
            return shown(value) | {"printed": printed.getvalue()}
    except BaseException as error:  # `sys.exit` is a way to fail here, too.
        raise Failed(what_went_wrong(error, printed.getvalue())) from None


def run(module: ast.Module) -> Any:
    """Runs all of it, and gives the value of the last statement if it has one."""
    names: dict[str, Any] = {"__name__": "__main__"}
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, GIVEN, "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), GIVEN, "eval"), names)
    return None


def shown(value: Any) -> dict[str, Any]:
    try:
        # Through JSON, so that what only looks like it (a number that is none) does not reach the caller.
        return {"value": json.loads(json.dumps(value, allow_nan=False))}
    except (TypeError, ValueError, RecursionError):
        return {"repr": repr(value)}


def what_went_wrong(error: BaseException, printed: str) -> str:
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == GIVEN:
        line, words = error.lineno, f"{type(error).__name__}: {error.msg}"
    else:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == GIVEN]
        line = lines[-1] if lines else None
    place = f"line {line}: " if line else ""
    return f"{place}{words}" + (f"\n\nprinted before:\n{printed}" if printed else "")

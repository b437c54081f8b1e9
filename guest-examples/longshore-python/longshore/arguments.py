"""What a function takes, as the JSON Schema that callers and models see."""

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

_PLAIN: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Argument(typing.NamedTuple):
    name: str
    schema: dict[str, Any]
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


def of(function: Callable[..., Any]) -> list[Argument]:
    """The arguments of a function, by its type hints; what is said of each in its docstring's `Args:` is said to callers."""
    hints = typing.get_type_hints(function)
    said = _said(inspect.getdoc(function) or "")
    arguments = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{function.__name__} takes {parameter}, which has no name that callers could use")
        if name not in hints:
            raise TypeError(f"{function.__name__} takes {name} and does not say of which type: write {name}: str")
        schema = _schema(hints[name], f"{name} of {function.__name__}")
        if name in said:
            schema["description"] = said[name]
        arguments.append(Argument(name, schema, parameter.default))
    return arguments


def schema(arguments: list[Argument]) -> dict[str, Any]:
    """The schema of the JSON object that holds them."""
    return {
        "type": "object",
        "properties": {argument.name: argument.schema for argument in arguments},
        "required": [argument.name for argument in arguments if argument.is_required],
        "additionalProperties": False,
    }


def description(function: Callable[..., Any]) -> str:
    """The docstring, less what it says of single arguments."""
    return (inspect.getdoc(function) or "").partition("\nArgs:\n")[0].strip()


def given(arguments: list[Argument], values: dict[str, Any]) -> dict[str, Any]:
    """The values of a call. Whole numbers may have been written as 3.0."""
    return {
        argument.name: _whole(values[argument.name], argument.schema)
        for argument in arguments
        if argument.name in values
    }


def _whole(value: Any, schema: dict[str, Any]) -> Any:
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    if isinstance(value, list):
        return [_whole(item, schema.get("items", {})) for item in value]
    if isinstance(value, dict):
        return {name: _whole(item, schema.get("additionalProperties", {})) for name, item in value.items()}
    return value


def _schema(hint: Any, of_what: str) -> dict[str, Any]:
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is Any:
        return {}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is list or origin is list:
        return {"type": "array", "items": _schema(inner[0], of_what)} if inner else {"type": "array"}
    if hint is dict or origin is dict:
        if inner and inner[0] is not str:
            raise TypeError(f"the keys of {of_what} must be texts: JSON has no others")
        return {"type": "object", "additionalProperties": _schema(inner[1], of_what)} if inner else {"type": "object"}
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        some = [_schema(one, of_what) for one in inner if one is not type(None)]
        return some[0] if len(some) == 1 else {"anyOf": some}
    raise TypeError(
        f"{of_what} has a type that callers cannot write in JSON: {hint}; "
        "use str, int, float, bool, list, dict, Literal, or one of these or None"
    )


def _said(docstring: str) -> dict[str, str]:
    said: dict[str, str] = {}
    last = None
    for line in docstring.partition("\nArgs:\n")[2].splitlines():
        name, colon, text = line.strip().partition(":")
        indent = len(line) - len(line.lstrip())
        if colon and name.isidentifier() and indent == 4:
            said[name] = text.strip()
            last = name
        elif last and indent > 4:
            said[last] += f" {line.strip()}"
    return said

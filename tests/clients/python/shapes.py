"""Holds what a server said against the types that the SDK generates from the published schemas of two revisions.

It is given a file with one JSON object a line: the revision that was spoken, the kind of message, the method that it
belongs to, and the message. It prints one line for each that it can judge, with the faults that it has. What the schema
does not name is a fault here, though it would be allowed: nothing of ours should look like a member of MCP that is none.
Tasks of 2026-07-28 are an extension, and no type of this package.

The schema of a form is the tool's own, and may say more than MCP has a name for.
"""

import json
import sys
from typing import Any

import mcp_types._v2025_11_25 as v2025
import mcp_types._v2026_07_28 as v2026
from mcp_types import methods
from pydantic import TypeAdapter, ValidationError

TYPES = {"2025-11-25": v2025, "2026-07-28": v2026}
# The SDK has no use for these, so that its table of methods leaves them out.
TASKS = {
    "tasks/get": v2025.GetTaskResult,
    "tasks/list": v2025.ListTasksResult,
    "tasks/cancel": v2025.CancelTaskResult,
    "tasks/result": v2025.GetTaskPayloadResult | v2025.CallToolResult,
}
# Members that the extension adds to what it does not define.
OF_TASKS = ["/params/notifications/taskIds"]


def errors_of(types) -> dict[int, Any]:
    """The types of errors that the schema gives a code."""
    found = {}
    for name, kind in vars(types).items():
        error = name.endswith("Error") and getattr(kind, "model_fields", {}).get("error")
        code = error and getattr(error.annotation, "model_fields", {}).get("code")
        if code and (only := getattr(code.annotation, "__args__", None)):
            found[only[0]] = kind
    return found


def target(line) -> list[Any]:
    """The types that a message must have; none if there is nothing to hold it against."""
    revision, kind, method, message = (line[key] for key in ("revision", "kind", "method", "message"))
    types = TYPES.get(revision)
    if types is None:
        return []
    row = (method, revision)
    match kind:
        case "notification":
            known = methods.SERVER_NOTIFICATIONS.get(row)
            return [types.JSONRPCNotification, known] if known else []
        case "request":
            known = methods.SERVER_REQUESTS.get(row)
            return [types.JSONRPCRequest, known] if known else []
        case "error":
            known = errors_of(types).get(message["error"]["code"])
            return [types.JSONRPCErrorResponse] + ([known] if known else [])
    result = message["result"]
    if types is v2025 and method in TASKS:
        return [types.JSONRPCResultResponse, TASKS[method]]
    if types is v2025 and "task" in result:
        return [types.JSONRPCResultResponse, v2025.CreateTaskResult]
    known = methods.SERVER_RESULTS.get(row)
    if known is None or result.get("resultType") == "task":
        return []
    return [types.JSONRPCResultResponse, known]


def unnamed(seen, known, path="") -> list[str]:
    """Members of what was seen that its type does not know."""
    if path.endswith("/requestedSchema"):
        return []
    if isinstance(seen, dict) and isinstance(known, dict):
        faults = [f"{path}/{key} is no member" for key in seen if key not in known and f"{path}/{key}" not in OF_TASKS]
        return faults + [fault for key in known if key in seen for fault in unnamed(seen[key], known[key], f"{path}/{key}")]
    if isinstance(seen, list) and isinstance(known, list):
        return [fault for n, pair in enumerate(zip(seen, known)) for fault in unnamed(*pair, f"{path}/{n}")]
    return []


def faults_of(kind, value, shown) -> list[str]:
    adapter = TypeAdapter(kind)
    try:
        parsed = adapter.validate_python(value, by_name=False)
    except ValidationError as error:
        return [f"{shown}: {at['loc']}: {at['msg']}" for at in error.errors()]
    known = adapter.dump_python(parsed, by_alias=True, mode="json", exclude_unset=True)
    return [f"{shown}: {fault}" for fault in unnamed(value, known)]


for number, text in enumerate(open(sys.argv[1])):
    line = json.loads(text)
    kinds = target(line)
    if not kinds:
        continue
    faults = []
    for kind in kinds:
        is_result = line["kind"] == "result" and kind is not kinds[0]
        value = line["message"]["result"] if is_result else line["message"]
        faults += faults_of(kind, value, getattr(kind, "__name__", str(kind)))
    print(json.dumps({"line": number, "faults": faults}))

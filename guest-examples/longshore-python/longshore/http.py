"""Requests over HTTP, to hosts that the operator lets this tool send them to.

    from longshore import http

    answer = http.post("https://api.example.org/orders", json={"what": "tea"})
    if answer.ok:
        print(answer.json())

A request that may change something is sent once at most, also if the server dies meanwhile. What became of it is then
asked of whoever called, or told by `OutcomeUnknown`: such a request must not simply be sent again.
"""

import json as _json
from typing import Any
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler, streams
from wit_world.imports import wasi_http_types as wasi

# What one read asks for.
_CHUNK = 64 * 1024
_METHODS = {
    "GET": wasi.Method_Get,
    "HEAD": wasi.Method_Head,
    "POST": wasi.Method_Post,
    "PUT": wasi.Method_Put,
    "DELETE": wasi.Method_Delete,
    "OPTIONS": wasi.Method_Options,
    "PATCH": wasi.Method_Patch,
}


class Error(Exception):
    """There is no response, and the text says why."""


class Denied(Error):
    """The operator does not let this tool send it."""


class Unreachable(Error):
    """There is no way there."""


class TimedOut(Error):
    """There was no response in time."""


class TooLarge(Error):
    """The request or the response is larger than allowed."""


class OutcomeUnknown(Error):
    """It may have been carried out, and may be yet: it must not simply be sent again."""


class Response:
    """A response, all of it."""

    def __init__(self, status: int, fields: list[tuple[str, bytes]], content: bytes) -> None:
        self.status = status
        self.content = content
        self.headers: dict[str, str] = {}
        for name, value in fields:
            # The first of several, as most readers want it.
            self.headers.setdefault(name.lower(), value.decode("latin-1"))

    @property
    def ok(self) -> bool:
        """Whether its status says that all went well."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Its body as text."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Its body, which is JSON."""
        return _json.loads(self.content)


def get(url: str, **more: Any) -> Response:
    """Reads what is there."""
    return request("GET", url, **more)


def post(url: str, **more: Any) -> Response:
    """Does something there."""
    return request("POST", url, **more)


def request(
    method: str,
    url: str,
    *,
    headers: dict[str, str] | None = None,
    content: bytes | str = b"",
    json: Any = None,
    timeout: float | None = None,
) -> Response:
    """Sends a request, and waits until its whole response is there.

    `{secret:NAME}` in a header stands for a secret, which is filled in when the request is sent. `timeout` is in
    seconds, for the connection and for each part of the response; the operator's limits hold as well.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise Error(f"{url!r} is no URL: write it like https://example.org/path")
    fields = [(name.lower(), value.encode("latin-1")) for name, value in (headers or {}).items()]
    body = content.encode() if isinstance(content, str) else content
    if json is not None:
        body = _json.dumps(json).encode()
        fields.append(("content-type", b"application/json"))
    try:
        return _send(method, parts, fields, body, timeout)
    except Err as error:
        raise _failure(parts.netloc, error.value) from None


def _send(method: str, parts: Any, fields: list[tuple[str, bytes]], body: bytes, timeout: float | None) -> Response:
    made = wasi.OutgoingRequest(wasi.Fields.from_list(fields))
    named = _METHODS.get(method)
    made.set_method(named() if named else wasi.Method_Other(method))
    made.set_scheme(wasi.Scheme_Https() if parts.scheme == "https" else wasi.Scheme_Http())
    made.set_authority(parts.netloc)
    made.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    outgoing = made.body() if body else None
    options = None
    if timeout is not None:
        nanoseconds = int(timeout * 1_000_000_000)
        options = wasi.RequestOptions()
        options.set_connect_timeout(nanoseconds)
        options.set_first_byte_timeout(nanoseconds)
        options.set_between_bytes_timeout(nanoseconds)
    future = outgoing_handler.handle(made, options)
    with future:
        if outgoing is not None:
            _write(outgoing, body)
        with future.subscribe() as pollable:
            pollable.block()
        outcome = future.get()
    match outcome:
        case Ok(value=Ok(value=response)):
            return _read(response)
        case Ok(value=Err(value=code)):
            raise Err(code)
        case _:
            raise Error("the response was taken before")


def _write(outgoing: wasi.OutgoingBody, body: bytes) -> None:
    with outgoing.write() as stream:
        while body:
            room = stream.check_write()
            stream.write(body[:room])
            body = body[room:]
        stream.flush()
    wasi.OutgoingBody.finish(outgoing, None)


def _read(response: wasi.IncomingResponse) -> Response:
    with response:
        status = response.status()
        with response.headers() as headers:
            fields = headers.entries()
        body = response.consume()
        content = bytearray()
        with body.stream() as stream:
            while True:
                try:
                    content += stream.blocking_read(_CHUNK)
                except Err as error:
                    if isinstance(error.value, streams.StreamError_Closed):
                        break
                    raise
        wasi.IncomingBody.finish(body)
    return Response(status, fields, bytes(content))


def _failure(host: str, code: Any) -> Exception:
    match code:
        case wasi.ErrorCode_HttpRequestDenied():
            return Denied(f"this tool may not send this request to {host}: its operator can grant it")
        case wasi.ErrorCode_InternalError(value=str(why)) if why.startswith("outcome-unknown"):
            return OutcomeUnknown(
                f"outcome-unknown: the request to {host} may have been carried out, and may be yet"
            )
        case wasi.ErrorCode_InternalError(value=str(why)):
            return Unreachable(f"{host} cannot be reached: {why}")
        case (
            wasi.ErrorCode_ConnectionTimeout()
            | wasi.ErrorCode_DnsTimeout()
            | wasi.ErrorCode_HttpResponseTimeout()
        ):
            return TimedOut(f"{host} did not answer in time")
        case wasi.ErrorCode_HttpResponseBodySize() | wasi.ErrorCode_HttpResponseHeaderSectionSize():
            return TooLarge(f"what {host} answered is too large")
        case wasi.ErrorCode_HttpRequestBodySize() | streams.StreamError_LastOperationFailed():
            return TooLarge(f"the body is larger than it may be in a request to {host}")
        case wasi.ErrorCode_HttpRequestUriInvalid() | wasi.ErrorCode_HttpRequestMethodInvalid() | None:
            return Error(f"this is no request to {host}")
        case wasi.ErrorCode_DestinationIpProhibited():
            return Unreachable(f"{host} cannot be reached: it is at an address that tools are not let to")
        case _:
            return Unreachable(f"{host} cannot be reached: {_words(code)}")


def _words(code: Any) -> str:
    """The name of an error, as words."""
    name = type(code).__name__.rpartition("_")[2]
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()

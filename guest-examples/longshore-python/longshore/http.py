"""Requests over HTTP, to hosts that the operator lets this tool send them to.

    from longshore import http, tool

    @tool()
    def weather(city: str) -> str:
        "Says what the weather is like."
        return http.get("https://weather.example.org/now", params={"city": city}).text

A request that may change something is sent once at most, also if the server dies meanwhile. What became of it is then
asked of whoever called, or told as `OutcomeUnknown`. Nothing here sends a request again by itself; an error's
`may_have_happened` says whether a tool may do so.
"""

import json as _json
import math
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from componentize_py_types import Err
from wit_world.imports import outgoing_handler, streams
from wit_world.imports import wasi_http_types as host

# What one read asks for, and what one write gives.
_CHUNK = 64 * 1024


class Error(Exception):
    """There is no response, and the text says why."""

    # Whether the request may have been carried out: then one that changes something must not simply be sent again.
    may_have_happened = True


class Invalid(Error):
    """This is no URL, or no request."""

    may_have_happened = False


class Denied(Error):
    """The operator does not let this tool send it."""

    may_have_happened = False


class Unreachable(Error):
    """There is no way there: it was not sent."""

    may_have_happened = False


class TimedOut(Error):
    """There was no response in time."""


class TooLarge(Error):
    """The response is larger than allowed."""


class OutcomeUnknown(Error):
    """The server died while it was under way: it may have been carried out, and may be yet."""


@dataclass
class Response:
    """A response, all of it."""

    status: int
    # Names in lower case; of a field that came more than once, the values with commas between them.
    headers: dict[str, str]
    content: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether its status says that all went well."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """Its body as text. What is no UTF-8 in it becomes `\N{REPLACEMENT CHARACTER}`."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """Its body, which is JSON."""
        return _json.loads(self.content)


def get(url: str, **options: Any) -> Response:
    """Reads something; see `request` for the options."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """Does something; see `request` for the options."""
    return request("POST", url, **options)


def request(
    method: str,
    url: str,
    *,
    params: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    content: bytes | str = b"",
    json: Any = None,
    timeout: float | None = None,
) -> Response:
    """Sends a request by any method, and waits until its whole response is there, or raises an `Error`.

    `params` stand behind the `?` of the URL, whatever letters are in them. `{secret:NAME}` in a header stands for a
    secret, which is filled in when the request is sent. The body is `content`, or a value in JSON. `timeout` is the
    longest to wait, in seconds, for the connection and for each part of the response; the operator's limits hold as
    well.
    """
    scheme, name, path = _parts(url, params)
    fields = {key.lower(): value for key, value in (headers or {}).items()}
    if json is not None:
        content = _json.dumps(json)
        fields.setdefault("content-type", "application/json")
    body = content.encode() if isinstance(content, str) else content
    try:
        made = host.OutgoingRequest(host.Fields.from_list([(key, value.encode()) for key, value in fields.items()]))
        made.set_method(_METHODS.get(method) or host.Method_Other(method))
        made.set_scheme(scheme)
        made.set_authority(name)
        made.set_path_with_query(path)
    except Err:
        text = f"there is something wrong with the method, the URL or the headers of a request to {name}"
        raise Invalid(text) from None
    outgoing = made.body() if body else None
    try:
        pending = outgoing_handler.handle(made, _options(timeout))
    except Err as error:
        raise _failure(name, error.value) from None
    with pending:
        if outgoing is not None:
            _write(outgoing, body, name)
        while (answer := pending.get()) is None:
            with pending.subscribe() as ready:
                ready.block()
    # Whether it was taken before, and within that whether it came.
    if isinstance(answer.value, Err):
        raise _failure(name, answer.value.value)
    return _read(answer.value.value, name)


_METHODS: dict[str, host.Method] = {
    "GET": host.Method_Get(),
    "HEAD": host.Method_Head(),
    "POST": host.Method_Post(),
    "PUT": host.Method_Put(),
    "DELETE": host.Method_Delete(),
    "OPTIONS": host.Method_Options(),
    "PATCH": host.Method_Patch(),
}


def _parts(url: str, params: dict[str, str] | None) -> tuple[host.Scheme, str, str]:
    """Scheme, host and path of a URL, with what is asked."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    schemes: dict[str, host.Scheme] = {"http": host.Scheme_Http(), "https": host.Scheme_Https()}
    if parts.scheme not in schemes or not parts.netloc:
        raise Invalid(f"{url!r} is no URL: write it like https://example.org/path")
    user, _, name = parts.netloc.rpartition("@")
    if user:
        # Not shown: there may be a password in it.
        raise Invalid(f"the URL of a request to {name} may name no user: use a header")
    asked = "&".join(part for part in (parts.query, urlencode(params or {})) if part)
    return schemes[parts.scheme], name, (parts.path or "/") + (asked and "?" + asked)


def _options(timeout: float | None) -> host.RequestOptions | None:
    if timeout is None:
        return None
    options = host.RequestOptions()
    ns = math.ceil(timeout * 1e9)
    for keep in (
        options.set_connect_timeout,
        options.set_first_byte_timeout,
        options.set_between_bytes_timeout,
    ):
        try:
            keep(ns)
        except Err:
            # A host that does not keep one of them has its own.
            pass
    return options


def _write(body: host.OutgoingBody, content: bytes, name: str) -> None:
    """Writes all of a body."""
    left = memoryview(content)
    try:
        with body.write() as stream:
            while left:
                # No more at once than may be copied.
                room = min(stream.check_write(), _CHUNK)
                if room == 0:
                    with stream.subscribe() as ready:
                        ready.block()
                    continue
                stream.write(bytes(left[:room]))
                left = left[room:]
            stream.flush()
        host.OutgoingBody.finish(body, None)
    except Err:
        raise Invalid(f"the body is too large for a request to {name}") from None


def _read(response: host.IncomingResponse, name: str) -> Response:
    """Reads all of a response."""
    headers: dict[str, str] = {}
    content = bytearray()
    with response:
        with response.headers() as fields:
            for key, value in fields.entries():
                text = value.decode("latin-1")
                headers[key] = f"{headers[key]}, {text}" if key in headers else text
        with response.consume() as body, body.stream() as stream:
            try:
                while True:
                    content += stream.blocking_read(_CHUNK)
            except Err as error:
                if not isinstance(error.value, streams.StreamError_Closed):
                    raise Error(f"what {name} answered cannot be read") from None
        return Response(response.status(), headers, bytes(content))


# What the host says instead of a code, for what none of them means.
_OUTCOME_UNKNOWN = "outcome-unknown"


def _failure(name: str, code: host.ErrorCode) -> Error:
    # What is not known to come before the request was sent is taken to come after it.
    unreachable = {
        host.ErrorCode_DnsTimeout: "its name was not found in time",
        host.ErrorCode_DnsError: "there is no such name",
        host.ErrorCode_DestinationIpProhibited: "it is at an address that tools are not let to",
        host.ErrorCode_ConnectionRefused: "it takes no connection",
        host.ErrorCode_ConnectionTimeout: "it took no connection in time",
        host.ErrorCode_ConnectionLimitReached: "too many requests are under way",
        host.ErrorCode_TlsCertificateError: "its certificate is not good",
        host.ErrorCode_TlsProtocolError: "there is no agreement about how to encrypt",
    }
    if why := unreachable.get(type(code)):
        return Unreachable(f"{name} cannot be reached: {why}")
    match code:
        case host.ErrorCode_HttpRequestDenied():
            return Denied(f"this tool may not send this request to {name}: its operator can grant it")
        case host.ErrorCode_HttpRequestUriInvalid() | host.ErrorCode_HttpRequestMethodInvalid():
            return Invalid(f"this is no request to {name}")
        case host.ErrorCode_HttpRequestBodySize():
            return Invalid(f"the body is too large for a request to {name}")
        case (
            host.ErrorCode_HttpResponseTimeout()
            | host.ErrorCode_ConnectionReadTimeout()
            | host.ErrorCode_ConnectionWriteTimeout()
        ):
            return TimedOut(f"{name} did not answer in time")
        case (
            host.ErrorCode_HttpResponseBodySize()
            | host.ErrorCode_HttpResponseHeaderSectionSize()
            | host.ErrorCode_HttpResponseHeaderSize()
        ):
            return TooLarge(f"what {name} answered is too large")
        case host.ErrorCode_InternalError(value=why) if (why or "").startswith(_OUTCOME_UNKNOWN):
            return OutcomeUnknown(f"outcome-unknown: the request to {name} may have been carried out, and may be yet")
        case host.ErrorCode_InternalError(value=str(why)):
            return Error(f"the request to {name} failed: {why}")
        case host.ErrorCode_ConnectionTerminated():
            return Error(f"the request to {name} failed: the connection broke")
        case host.ErrorCode_HttpProtocolError():
            return Error(f"the request to {name} failed: what it answered is no HTTP")
    return Error(f"the request to {name} failed: {code}")

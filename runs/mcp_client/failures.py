"""From what the SDK, the transports and the system raise to a Failed with a sentence that says what to do."""

from __future__ import annotations

import math

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR
from pydantic import ValidationError

from runs.errors import EgressRefused

from .http import BodyEncodedError, BodyTooLargeError, HttpLink
from .kept import KeptLink
from .mapping import clip
from .negotiation import ProbeEndedServerError
from .sessions import Attempt
from .stdio import StdioLink
from .values import Failed, FailureCode

MAX_SERVER_TEXT = 1000
_LOST_STREAM = ("SSE stream ended", "SSE stream failed")
_NOT_MCP = ("Failed to parse", "Unexpected content type", "server answered a request with 202")
_STATUS_STANDINS = ("Server returned an error response", "Not Found", "Session terminated", "Redirect to ")
"""The SDK's own texts for a lost stream, for an answer that is no message, and for a bare HTTP status."""


def failed_from(error: Exception, attempt: Attempt, *, max_bytes: int) -> Failed | None:
    """The Failed for an exception, or None if the exception is not about the server."""
    if isinstance(error, MCPError):
        return _from_protocol_error(error, attempt, max_bytes)
    sent = attempt.operation_started
    if isinstance(error, EgressRefused):
        return Failed(
            code=FailureCode.UNREACHABLE, message=error.message, sent=sent and not _never_left(attempt)
        )
    if isinstance(error, BodyTooLargeError):
        return too_large(max_bytes, sent=sent)
    if isinstance(error, BodyEncodedError):
        message = "The server compresses its answers although asked not to. Switch compression off there."
        return Failed(code=FailureCode.PROTOCOL_ERROR, message=message, sent=sent, answered=sent)
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return _unreachable(_cause(error), sent=sent and not _never_left(attempt))
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return _died("", sent=True) if sent else _unreachable(_cause(error), sent=False)
    if isinstance(error, OSError) and attempt.link is None:
        return _unreachable(f"{error.strerror or error}", sent=False)
    if isinstance(error, ProbeEndedServerError | ValidationError | RuntimeError) and not sent:
        message = "The server's answer to the handshake is not one. Check that it is an MCP server."
        return Failed(code=FailureCode.PROTOCOL_ERROR, message=message, sent=False)
    return None


def timed_out(seconds: float, attempt: Attempt | None) -> Failed:
    """The Failed for a server that said nothing for `seconds`, a person's time not counted."""
    message = f"The server did not answer within {_seconds(seconds)}."
    link = attempt.link if attempt else None
    if isinstance(link, StdioLink) and link.noise:
        message += f" It wrote {link.noise} lines to its output that are not MCP messages."
    started = attempt is not None and attempt.operation_started
    message += " The call was cancelled; whether it took effect is unknown." if started else " Check its log."
    return Failed(code=FailureCode.TIMEOUT, message=message, sent=started)


def too_large(max_bytes: int, *, sent: bool) -> Failed:
    """The Failed for a message over the bound; the operation has been answered, the answer is lost."""
    message = (
        f"The server sent more than {max_bytes // 1_000_000} MB in one message. "
        "Ask it for less, for example for one page at a time."
    )
    return Failed(code=FailureCode.TOO_LARGE, message=message, sent=sent, answered=sent)


def _from_protocol_error(error: MCPError, attempt: Attempt, max_bytes: int) -> Failed:
    sent = attempt.operation_started
    link = attempt.link
    if error.code == CONNECTION_CLOSED and _is_lost_connection(error.message):
        if (isinstance(link, StdioLink) and link.too_large) or "byte limit" in error.message:
            return too_large(max_bytes, sent=sent)
        if isinstance(link, KeptLink) and not link.heard_of_end:
            return _keeper_died(sent=sent)
        return _died(link.last_words() if isinstance(link, StdioLink) else "", sent=sent)
    if error.code in (PARSE_ERROR, INVALID_REQUEST) and error.message.startswith(_NOT_MCP):
        message = "The answer is not an MCP message. Check that the URL is that of an MCP server."
        return Failed(code=FailureCode.PROTOCOL_ERROR, message=message, sent=sent, answered=sent)
    if isinstance(link, HttpLink) and link.seen.status and error.message.startswith(_STATUS_STANDINS):
        return _from_status(link.seen.status, sent=sent)
    text = clip(error.message, MAX_SERVER_TEXT) or "no reason"
    message = f"The server refused: {text} (error {error.code})"
    return Failed(code=FailureCode.REFUSED_BY_SERVER, message=message, sent=sent, answered=sent)


def _is_lost_connection(text: str) -> bool:
    """Whether a -32000 is the SDK's own for a lost connection; servers use that code for errors of theirs."""
    return text == "Connection closed" or text.startswith(_LOST_STREAM)


def _from_status(status: int, *, sent: bool) -> Failed:
    advice = {
        401: "Check the credentials in its headers.",
        403: "Check the credentials in its headers.",
        404: "Check its URL.",
        405: "Check its URL.",
        429: "It asks for fewer calls. Try again later.",
    }.get(status)
    if advice is None:
        advice = "It redirects elsewhere. Enter the final URL." if status < 400 else "Look into its log."
    # A 5xx may come from a gateway in front of a server that is still at work.
    answered = sent and status < 500
    message = f"The server answered with HTTP status {status}. {advice}"
    return Failed(code=FailureCode.HTTP_STATUS, message=message, sent=sent, answered=answered)


def _died(last_words: str, *, sent: bool) -> Failed:
    message = "The server ended the connection before it answered."
    if last_words:
        message += f" Its last line was: {last_words}"
    message += " Whether the call took effect is unknown." if sent else " Check that it starts by itself."
    return Failed(code=FailureCode.SERVER_DIED, message=message, sent=sent)


def _keeper_died(*, sent: bool) -> Failed:
    message = "The process that kept the server's session has ended, and the server with it."
    message += " Whether the call took effect is unknown." if sent else " Try again."
    return Failed(code=FailureCode.SERVER_DIED, message=message, sent=sent)


def _unreachable(cause: str, *, sent: bool) -> Failed:
    message = f"The server cannot be reached: {cause}. Check that it runs and that its address is right."
    return Failed(code=FailureCode.UNREACHABLE, message=message, sent=sent)


def _never_left(attempt: Attempt) -> bool:
    """Whether the POST that found no connection was the operation itself (and not an answer to a prompt)."""
    if attempt.resumed or not isinstance(attempt.link, HttpLink) or attempt.dispatcher is None:
        return False
    body = attempt.link.seen.never_left
    identifier = attempt.dispatcher.operation_id
    return identifier is not None and identifier.encode() in body and b"notifications/cancelled" not in body


def _cause(error: Exception) -> str:
    return clip(str(error).rstrip("."), 200) or type(error).__name__


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{math.floor(seconds) if seconds >= 1 else seconds:g} seconds"

"""Which generation a server speaks: found out once, saved, and used without a question afterwards.

`saved` is `{"discover": {...}}` for a server of 2026-07-28 and `{"initialize": {...}}` for an older one. A
modern server needs no handshake, so a saved discovery costs no message. An older one needs its handshake on
every session, so a saved handshake only spares the probe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import ClientSession, MCPError
from mcp.types import DiscoverResult
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from .values import Json

LEGACY_ONLY: Mapping[str, Json] = {"initialize": {}}
"""A `saved` that goes straight to the handshake."""


class ProbeEndedServerError(Exception):
    """The server closed the connection on the probe: an older one that must be asked by handshake alone."""


async def negotiate(client: ClientSession, saved: Mapping[str, Json] | None) -> dict[str, Json]:
    """Settle the generation on an open session; returns what to save.

    Raises ProbeEndedServerError, MCPError for a refused handshake, RuntimeError or ValidationError for an
    answer that is not one.
    """
    if saved and "discover" in saved:
        try:
            client.adopt(DiscoverResult.model_validate(saved["discover"]))
            return {"discover": saved["discover"]}
        except (ValidationError, RuntimeError):
            pass  # saved by a version of this program that knew other versions: ask again
    if saved and "initialize" in saved:
        return await _handshake(client)
    try:
        return _keep("discover", await client.discover())
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise ProbeEndedServerError from error
        if error.code == UNSUPPORTED_PROTOCOL_VERSION and _is_newer_only(error.data):
            raise
    except (ValidationError, RuntimeError):
        pass  # it answered something else than a discovery, or names no version that we know
    return await _handshake_or_late_discovery(client)


async def _handshake(client: ClientSession) -> dict[str, Json]:
    return _keep("initialize", await client.initialize())


async def _handshake_or_late_discovery(client: ClientSession) -> dict[str, Json]:
    """A slow modern server may answer the probe only after we gave up on it; its refusal of the handshake
    says so, and then a second probe is answered at once."""
    try:
        return await _handshake(client)
    except MCPError as error:
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
    return _keep("discover", await client.discover())


def _is_newer_only(data: Any) -> bool:
    """Whether an "unsupported version" error names only modern versions, none of which we speak."""
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or not supported:
        return False
    return all(isinstance(v, str) and v > MODERN_PROTOCOL_VERSIONS[-1] for v in supported)


def _keep(kind: str, result: BaseModel) -> dict[str, Json]:
    return {kind: result.model_dump(by_alias=True, mode="json", exclude_none=True)}

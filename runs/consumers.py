"""One socket per page, carrying hints only (see `runs.push`). Decisions never travel here."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer

from runs import access, push
from runs.errors import M3Error
from runs.models import Round, Run

SIGNED_OUT = 4401
NOT_YOURS = 4404
START_ANEW = 1012
"""As if the server had started anew (RFC 6455's registry of codes); browsers connect again."""


class HintConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    """`/ws/hints/` follows the account's pauses and runs; `?run=7` follows one run as well."""

    groups_joined: tuple[str, ...] = ()
    account = 0

    async def connect(self) -> None:
        await self.accept()  # a close code is only readable by the page after an accept
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self.close(code=SIGNED_OUT)
            return
        wanted = parse_qs(self.scope["query_string"].decode("latin-1")).get("run", [""])[0]
        try:
            self.account, groups = await database_sync_to_async(_subscription)(user, wanted)
        except M3Error:
            await self.close(code=NOT_YOURS)
            return
        self.groups_joined = groups
        for group in groups:
            await self.channel_layer.group_add(group, self.channel_name)
        # Counted after joining: a pause that opens in between is then counted or hinted at, never neither.
        await self._hello()

    async def disconnect(self, code: int) -> None:
        for group in self.groups_joined:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A binary frame is ignored; the base class would end the socket with an error."""
        if text_data:
            await super().receive(text_data=text_data)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        """Nothing that a page says here changes anything; a ping tells it that the line is alive."""
        if isinstance(content, dict) and content.get("type") == "ping":
            await self.send_json({"type": "pong"})

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        """A frame that is not JSON is ignored like any other that says nothing."""
        try:
            return await super().decode_json(text_data)
        except (ValueError, RecursionError):
            return None

    async def hint(self, message: dict[str, Any]) -> None:
        await self.send_json(message["hint"])

    async def look_again(self, message: dict[str, Any]) -> None:
        """Hints may have been lost on their way to this process: the page starts anew, as after a connect."""
        await self._hello()

    async def start_anew(self, message: dict[str, Any]) -> None:
        """This process no longer knows who listens to what: the page connects anew, and then counts everything."""
        await self.close(code=START_ANEW)

    async def _hello(self) -> None:
        pending = await database_sync_to_async(_pending)(self.account)
        await self.send_json({"type": "hello", "pending_count": pending})


def _subscription(user: Any, wanted: str) -> tuple[int, tuple[str, ...]]:
    """The account whose hints this person may hear, and the groups that carry them. Raises NotAllowed, NotFound."""
    actor = access.actor_for(user)
    groups = [push.inbox_group(actor.account.pk), push.runs_group(actor.account.pk)]
    if wanted:
        groups.append(push.run_group(access.get(actor, Run.objects.all(), pk=wanted).pk))
    return actor.account.pk, tuple(groups)


def _pending(account: int) -> int:
    return Round.objects.filter(account=account).pending().count()

"""One socket per page, carrying hints only (see `runs.push`). Decisions never travel here."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Final
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from runs import access, keys, push
from runs.errors import M3Error
from runs.models import Round, Run
from runs.races import AWAY

SIGNED_OUT = 4401
NOT_YOURS = 4404
START_ANEW = 4503
"""Pages connect again. A code of our own like the others: the web server fails over any that an application gives it
but 1000 and those from 3000 to 4999, so over 1012, "service restart", too."""

RIGHT_SECONDS: Final = 30.0
"""How long a page is believed to be of somebody who may look; then they are looked up before they hear anything."""

RIGHT_SECONDS_AT_A_PING: Final = 15.0
"""The same when the page says that it is there, which it does every 20 s (`static/m3web/hints.js`): one that is open
hears hints without waiting for a look, and an idle one is closed soon after its person has left."""


class HintConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    """`/ws/hints/` follows the account's pauses and runs; `?run=7` follows one run as well."""

    groups_joined: tuple[str, ...] = ()
    account = 0
    looked_at = 0.0
    """When it was last known that the person may look, by the monotonic clock."""
    over = False
    """It was closed from here; what is still on its way to the page is not passed on."""

    async def connect(self) -> None:
        await self.accept()  # a close code is only readable by the page after an accept
        user = self.scope.get("user")
        if user is None or not user.is_authenticated:
            await self._end(SIGNED_OUT)
            return
        self.looked_at = time.monotonic()
        wanted = parse_qs(self.scope["query_string"].decode("latin-1")).get("run", [""])[0]
        try:
            self.account, groups = await database_sync_to_async(_subscription)(user, wanted)
        except M3Error:
            await self._end(NOT_YOURS)
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
        if not isinstance(content, dict) or content.get("type") != "ping":
            return
        # While the database is away it is found out at a later ping; a pong gives nothing away.
        with contextlib.suppress(*AWAY):
            await self._look(RIGHT_SECONDS_AT_A_PING)
        if not self.over:
            await self.send_json({"type": "pong"})

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        """A frame that is not JSON is ignored like any other that says nothing."""
        try:
            return await super().decode_json(text_data)
        except (ValueError, RecursionError):
            return None

    async def hint(self, message: dict[str, Any]) -> None:
        if await self._may_hear():
            await self.send_json(message["hint"])

    async def look_again(self, message: dict[str, Any]) -> None:
        """Hints may have been lost on their way to this process: the page starts anew, as after a connect."""
        if await self._may_hear():
            await self._hello()

    async def start_anew(self, message: dict[str, Any]) -> None:
        """This process no longer knows who listens to what: the page connects anew, and then counts everything."""
        await self._end(START_ANEW)

    async def _may_hear(self) -> bool:
        """Whether something may be passed on. While the database is away nobody knows, and what is not passed on is
        lost: the page has to connect anew, and then counts everything."""
        try:
            await self._look(RIGHT_SECONDS)
        except AWAY:
            await self._end(START_ANEW)
        return not self.over

    async def _look(self, within: float) -> None:
        """Close the socket unless its person may still look; nothing is asked if that was known `within` so many
        seconds. Messages are handled one after the other, so that looks of one page never overlap."""
        asked = time.monotonic()
        if self.over or asked < self.looked_at + within:
            return
        if not await database_sync_to_async(_may_look)(self.scope["session"], self.account):
            await self._end(SIGNED_OUT)
        self.looked_at = asked

    async def _end(self, code: int) -> None:
        self.over = True
        await self.close(code=code)

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


def _may_look(session: SessionBase, account: int) -> bool:
    """Whether the login still stands, of somebody whose right in the account does too (`keys.still_acts`)."""
    request = HttpRequest()
    request.session = session.__class__(session.session_key)  # read anew: ended, it is nobody's
    user = get_user(request)
    return user.pk is not None and keys.still_acts(user.pk, account)


def _pending(account: int) -> int:
    return Round.objects.filter(account=account).pending().count()

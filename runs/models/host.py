"""Where sessions of older stdio servers are kept, when several machines work on one database."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

HOST_LENGTH = 80
"""Longest identity of a host (`runs.keeper.place.this_host`), in characters."""


class WorkerHost(models.Model):
    """A host on which workers are or were. Written by `runs.hosts` alone."""

    id = models.CharField(primary_key=True, max_length=HOST_LENGTH)
    seen_at = models.DateTimeField()
    """When a worker of it last gave a sign of life, by the database's clock."""

    def __str__(self) -> str:
        return self.id


class LeftSession(models.Model):
    """A session whose run went on elsewhere because its host was gone; that host ends it when it comes back."""

    host = models.CharField(max_length=HOST_LENGTH)
    keeper = models.CharField(max_length=200)
    """Path of its keeper's socket, on that host."""
    operation_id = models.CharField(max_length=100)
    """JSON-RPC id of the call that its server still works on."""
    token = models.PositiveBigIntegerField()
    """The fence of the worker that went on without it."""
    left_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["host"], name="left_session_of")]

    def __str__(self) -> str:
        return self.keeper

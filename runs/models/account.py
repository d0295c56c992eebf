"""Who there is: accounts, the people in them, and the end users that agents act for."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models

from runs.models.base import one_of, time_limit, word_field
from runs.models.exact import ExactJSON


class Role(StrEnum):
    """What a member may do; each role may do what the ones before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class User(AbstractUser):
    """A person who signs in. What they may do is decided by their Membership, never by this row."""


class Account(models.Model):
    """A tenant. Every other object belongs to exactly one."""

    name = models.CharField(max_length=120)
    slug = models.SlugField(unique=True)
    elicitation_timeout = models.CharField(max_length=32, null=True, blank=True, validators=[time_limit])
    """Default time that a person has to answer, in the format of A17; null waits for ever."""
    require_end_user_id = models.BooleanField(default=False)
    """Whether a run has to say which end user it is for; a run under another run has its parent's."""
    approval_email_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Since when nothing of it goes on here, because it goes on elsewhere; written by `runs.closing` and imports."""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def hold_names(cls, account_id: int) -> None:
        """Whoever gives a name in this account does so alone until the transaction ends, so that a check for a name
        that is taken is still true when the row is stored. Nobody who only refers to the account waits."""
        cls.objects.select_for_update(no_key=True).filter(pk=account_id).values_list("pk").get()


class Membership(models.Model):
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = word_field(Role)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "user"], name="membership_once"),
            one_of("membership", "role", Role),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} in {self.account}"


class EndUser(models.Model):
    """A customer of the embedding application (`user_id`, their string). Created by first use.

    One who was removed while the history still names them keeps the row, emptied; `runs.end_users` has the rule.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="end_users")
    user_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200, blank=True)
    email = models.EmailField(blank=True)
    company = models.CharField(max_length=200, blank=True)
    metadata = ExactJSON(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "user_id"], name="end_user_once"),
            models.CheckConstraint(condition=~models.Q(user_id=""), name="end_user_named"),
        ]

    def __str__(self) -> str:
        return self.user_id

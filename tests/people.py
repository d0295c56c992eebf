"""The same few people everywhere: alice and bob decide, ada administers, vera looks on, otto is somebody else's."""

from __future__ import annotations

from runs.models import Account, Membership, Role, User

PASSWORD = "correct horse battery staple"


def person(name: str, account: Account, role: Role) -> User:
    user = User.objects.create_user(username=name, password=PASSWORD)
    Membership.objects.create(account=account, user=user, role=role.value)
    return user

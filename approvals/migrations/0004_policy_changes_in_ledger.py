from importlib import import_module
from typing import Any

from django.db import migrations


def carry_over(apps: Any, schema_editor: Any) -> None:
    """What was recorded about rules goes into the ledger of their account, in its order."""
    append = import_module("runs.migrations.0008_ledger").append
    for row in apps.get_model("approvals", "PolicyChange").objects.order_by("pk").iterator(chunk_size=1000):
        append(
            apps,
            row.account_id,
            action=f"policy.{row.change}",
            subject=f"policy {row.rule_id}",
            facts={"sentence": row.sentence, **row.details},
            actor_id=row.actor_id,
            actor_name=row.actor_name,
            at=row.at,
        )


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0003_policy_conditions_and_changes'),
        ('runs', '0008_ledger'),
    ]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
        migrations.DeleteModel(name='PolicyChange'),
    ]

"""Hosts of workers, and sessions that were left behind on one."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_webhooks")]

    operations = [
        migrations.CreateModel(
            name="WorkerHost",
            fields=[
                ("id", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="LeftSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=80)),
                ("keeper", models.CharField(max_length=200)),
                ("operation_id", models.CharField(max_length=100)),
                ("token", models.PositiveBigIntegerField()),
                ("left_at", models.DateTimeField()),
            ],
            options={"indexes": [models.Index(fields=["host"], name="left_session_of")]},
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=Q(("pin__isnull", False)), fields=["pin"], name="run_pinned"),
        ),
    ]

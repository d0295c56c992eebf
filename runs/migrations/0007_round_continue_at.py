"""When a question goes on by itself."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_api_resources")]

    operations = [
        migrations.AddField(
            model_name="round",
            name="continue_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="round",
            index=models.Index(
                condition=Q(("continue_at__isnull", False), ("status", "pending")),
                fields=["continue_at"],
                name="round_going_on",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=Q(("continue_at__isnull", True), ("kind", "question"), _connector="OR"),
                name="round_only_questions_go_on",
            ),
        ),
    ]

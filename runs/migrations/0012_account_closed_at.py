from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0011_hosts"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="closed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]

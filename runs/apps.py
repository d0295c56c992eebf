from django.apps import AppConfig
from django.conf import settings


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        """Whatever process changes something, a page or a command: its wakes reach a worker."""
        from runs import engines
        from runs.engines.words import Words

        if settings.M3.engine == "procrastinate":
            from runs.engines.jobs import Jobs  # its package is not installed everywhere

            engines.use(Jobs())
        else:
            engines.use(Words())

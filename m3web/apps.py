from django.apps import AppConfig


class M3WebConfig(AppConfig):
    name = "m3web"
    verbose_name = "M3 Web"

    def ready(self) -> None:
        from m3web import checks  # noqa: F401  (registers the system checks)

"""Django settings; every value that an installation may change comes from `m3web.config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF

from m3web import config, stores

BASE_DIR = Path(__file__).resolve().parent.parent
M3 = config.load(BASE_DIR)

SECRET_KEY = M3.secret_key
SALT_KEY = [M3.encryption_salt]
DEBUG = M3.debug
ALLOWED_HOSTS = M3.allowed_hosts
CSRF_TRUSTED_ORIGINS = M3.trusted_origins

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "encrypted_fields",
    "rest_framework",
    *stores.apps(M3.engine),
    "m3web.apps.M3WebConfig",
    "approvals.apps.ApprovalsConfig",
    "runs.apps.RunsConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "m3web.middleware.BoundedBodyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "m3web.middleware.ErrorPageMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "m3web.urls"
ASGI_APPLICATION = "m3web.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "m3web.context.shell",
            ],
        },
    }
]

DATABASE_ROUTERS = ["m3web.routers.QueueOnPostgres"]
DATABASES: dict[str, dict[str, Any]] = {
    "default": stores.database(
        M3.database,
        connections=M3.database_connections,
        abandoned_after=M3.lease_seconds,
        silence=M3.silence_seconds,
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(M3.data_dir / "test.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PROCRASTINATE_AUTODISCOVER_MODULE_NAME = ""  # its one task is registered by the worker

CHANNEL_LAYERS = stores.channel_layers(M3.redis_url, M3.secret_key, silence=M3.silence_seconds)

AUTH_USER_MODEL = "runs.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "m3web.api.auth.KeyAuthentication",
        "m3web.api.auth.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["m3web.api.body.JsonBody"],
    "DEFAULT_SCHEMA_CLASS": "m3web.api.schema.Described",
    "EXCEPTION_HANDLER": "m3web.api.errors.handle",
    "UNAUTHENTICATED_USER": None,
    "UNICODE_JSON": False,  # a text from outside may hold half a character, which has no UTF-8 form
}

SPECTACULAR_SETTINGS = {
    "TITLE": "M3 Web",
    "DESCRIPTION": "Runs of agents, the pauses in which people decide, and what both need.",
    "VERSION": "2",
    "OAS_VERSION": "3.1.1",
    "COMPONENT_SPLIT_PATCH": False,
    "PATH_CONVERTER_OVERRIDES": {"int": {"type": "integer", "minimum": 0}},
    "POSTPROCESSING_HOOKS": ["m3web.api.schema.postprocess"],
}

STATIC_URL = "static/"
STATIC_ROOT = M3.data_dir / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise complains about a folder that is not there
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Serves straight from the source folders, so that no collectstatic step stands before the first start.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

APPEND_SLASH = False  # a redirected POST becomes a GET: an approval would turn into a read
DATA_UPLOAD_MAX_MEMORY_SIZE = M3.max_body_bytes
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = M3.https
SESSION_ENGINE = "m3web.sessions"
SESSION_COOKIE_AGE = 60 * 60 * 12
if M3.https:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 60 * 60 * 24 * 30

M3_GATE = "approvals.gate.PolicyGate"
"""What a worker asks before every call; for those that start one without importing it (`runs.gate.configured`)."""

M3_PERMISSION_REQUESTS = "approvals.permission_requests.requests_of"
"""How pauses look to m8tes clients; for the stream and the webhooks, which may not import it (`runs.asked`)."""

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": M3.log_level},
    "loggers": {
        "daphne": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "mcp": {"level": "ERROR"},
        "axes": {"level": "WARNING"},
        "procrastinate": {"level": "WARNING"},
    },
}

"""How fields, bodies and ways to sign in of our own appear in the OpenAPI description. Loaded by being imported."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction

from runs.api.fields import Word

Json = dict[str, Any]


class TextField(OpenApiSerializerFieldExtension):
    """Text, and a Word as one of its words."""

    target_class = "runs.api.fields.Text"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> Json:
        field = self.target
        if isinstance(field, Word):
            return {"type": "string", "enum": [*field.words, None] if field.allow_null else [*field.words]}
        return {"type": "string"} if field.allow_blank else {"type": "string", "minLength": 1}


class UnavailableField(OpenApiSerializerFieldExtension):
    target_class = "runs.api.fields.Unavailable"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> Json:
        """Null is added by whoever asks, because such a field may always be null."""
        return {"anyOf": [{"const": self.target.off}], "description": self.target.why}


class AgentNamedBody(OpenApiSerializerExtension):
    target_class = "runs.serializers.runs.AgentNamed"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Json:
        """An agent has two names, and one of them has to be there."""
        schema: Json = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        schema["required"] = [name for name in schema["required"] if name != "agent_id"]
        schema["properties"]["agent_id"]["type"] = ["integer", "null"]
        schema["anyOf"] = [
            {"required": [name], "properties": {name: {"type": "integer"}}}
            for name in ("agent_id", "teammate_id")
        ]
        return schema


class ServerBody(OpenApiSerializerExtension):
    target_class = "runs.serializers.servers.ServerChange"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> Json:
        """A server has one address."""
        schema: Json = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if "name" in schema.get("required", []):
            schema["oneOf"] = [{"required": ["entry"]}, {"required": ["url"]}]
        else:
            schema["not"] = {"required": ["entry", "url"]}
        return schema


class KeyScheme(OpenApiAuthenticationExtension):
    target_class = "m3web.api.auth.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: AutoSchema) -> Json:
        return {"type": "http", "scheme": "bearer", "description": "An API key, m3_…"}


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "m3web.api.auth.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> Json:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The session of the pages; a change also needs the header X-CSRFToken.",
        }

"""From a JSON Schema to the questions of a form (R33, R34, R37, R38).

Plain package. `form_fields` describes a form for an answer, `editing_fields` one for changing the arguments
of a call (R20). Neither ever raises for a strange schema: what cannot be asked field by field is asked as
JSON.
"""

from __future__ import annotations

from approvals.schema_form.editing import editing_fields
from approvals.schema_form.fields import FieldKind, FormField, Option
from approvals.schema_form.reading import form_fields

__all__ = ["FieldKind", "FormField", "Option", "editing_fields", "form_fields"]

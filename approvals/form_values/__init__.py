"""From what a form posted to the content of an answer (R34-R38).

Plain package. `read` is the whole way: typed texts -> values -> the one validator. Three rules decide what is
sent:

1. An optional field that is left empty is absent from the content. An explicitly empty text can therefore not
   be sent from an optional field, unless it is what the arguments under edit hold already.
2. A required field that is left empty is absent too, and so refused as required; only a required list without
   a choice is `[]`, and a required field that accepts null is null.
3. When arguments are edited, a field that comes back as it was shown keeps its value, type and all (R20).
"""

from __future__ import annotations

from approvals.form_values.reading import Posted, Reading, read
from approvals.form_values.showing import ZONE, Raw, shown, untouched

__all__ = ["ZONE", "Posted", "Raw", "Reading", "read", "shown", "untouched"]

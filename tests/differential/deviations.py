"""Where our managed-input store differs from the reference on purpose, each with its reason.

`test_deviations` shows every one of them, `docs/managed-input.md` lists them. Whatever is not here is to agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Deviation:
    """What the reference does, what ours does, and why."""

    name: str
    reference: str
    ours: str
    why: str


DEVIATIONS: Final = (
    Deviation(
        "Index of a round",
        "Is taken once in an execution.",
        "Is taken once in a logical operation.",
        "Approvals, questions and plans of a run are rounds too; each operation counts its own.",
    ),
    Deviation(
        "Open rounds",
        "Any number may be pending in one operation.",
        "One round is pending in an operation.",
        "The server asked once; a second open question of the same call could not be delivered.",
    ),
    Deviation(
        "Round ids",
        "Are unique in an execution.",
        "Are unique in the database.",
        "Pages and the API address a round by its id alone.",
    ),
    Deviation(
        "Unknown executions",
        "Get rounds like any other.",
        "Get none: an execution is a turn of a run.",
        "A round belongs to a run, or nobody would see it.",
    ),
    Deviation(
        "Lost rounds",
        "The store leaves their execution as it is.",
        "The last lost round ends its execution as failed; no more rounds are opened in it.",
        "Round and run change in one transaction, so that no crash leaves a run waiting for nothing.",
    ),
    Deviation(
        "Length of a lease",
        "NaN, infinity and a length beyond the calendar raise Python's own errors.",
        "They raise ManagedInputValidationError.",
        "Every bad argument is refused in the same way.",
    ),
    Deviation(
        "Operation parameters",
        "What is no mapping raises Python's own errors, or is taken if it can be made into one.",
        "What is no mapping raises ManagedInputValidationError.",
        "Every bad argument is refused in the same way.",
    ),
    Deviation(
        "Repeats with lists",
        "A creation whose parameters hold a list never equals its repeat.",
        "An identical repeat returns the round.",
        "The contract calls it identical.",
    ),
    Deviation(
        "Repeats with other numbers",
        "1 and 1.0 are the same when a creation is repeated.",
        "They differ, as they do in answers.",
        "One rule for what is the same.",
    ),
    Deviation(
        "Repeats in another time zone",
        "The same moment under another offset is another creation.",
        "It is the same.",
        "A moment does not change with the clock that shows it.",
    ),
    Deviation(
        "Times without a zone",
        "Are taken for created_at and deadline.",
        "Are refused.",
        "A deadline has to mean one moment.",
    ),
    Deviation(
        "Lengths",
        "Names and numbers of any size are taken.",
        "They are bounded by their columns.",
        "They come from outside, and both databases have to keep them.",
    ),
    Deviation(
        "Characters",
        "A NUL in a name or an answer is taken; half a surrogate pair raises Python's own error.",
        "Both are refused.",
        "PostgreSQL keeps neither.",
    ),
    Deviation(
        "Lists and objects in answers",
        "Never fit a field of type array or object; a list's length is not looked at.",
        "Are judged by the schema.",
        "The contract validates content against the schema.",
    ),
    Deviation(
        "Unusable schemas",
        "What the validator cannot use raises its own error if the answer reaches it, and is passed over otherwise.",
        "An accepted form with such a schema raises ManagedInputValidationError.",
        "Schemas come from servers; none of them may raise what callers do not expect.",
    ),
    Deviation(
        "References to published schemas",
        "The meta-schemas of JSON Schema are at hand.",
        "A reference that leads out of the schema is refused.",
        "One rule without exceptions.",
    ),
    Deviation(
        "Formats",
        "Are not checked.",
        "Those of JSON Schema that we know are checked.",
        "A person who mistypes an e-mail address learns of it before the server does.",
    ),
    Deviation(
        "Patterns",
        "Are Python's regular expressions.",
        "Are ECMAScript's, with a bound on the work.",
        "JSON Schema says ECMAScript; a pattern from outside must not stop a process.",
    ),
    Deviation(
        "Multiples of decimals",
        "0.3 is no multiple of 0.1.",
        "It is.",
        "People write decimals.",
    ),
    Deviation(
        "Nesting",
        "Very deep content raises an internal error.",
        "Very deep content is refused as a value.",
        "It comes from outside.",
    ),
    Deviation(
        "The mask",
        "[REDACTED], percent-encoded in URLs.",
        "[redacted].",
        "The product's own word, the same everywhere.",
    ),
    Deviation(
        "Secret names",
        "A few words.",
        "More of them, among them pin, otp, jwt and ssn; secrets in the fragment of a URL too.",
        "Diagnostics leave the installation more easily than answers do.",
    ),
)

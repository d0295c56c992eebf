"""What pages show of a pause: `row_for(round)` for lists, `card_for(round, actor)` for cards (design section 4)."""

from approvals.cards.arguments import arguments_table
from approvals.cards.build import card_for, questions_of, row_for
from approvals.cards.values import Arguments, Card, RememberChoice, RiskTag, Row

__all__ = [
    "Arguments",
    "Card",
    "RememberChoice",
    "RiskTag",
    "Row",
    "arguments_table",
    "card_for",
    "questions_of",
    "row_for",
]

"""What pages show of a pause: `row_for(round)` for lists, `card_for(round, actor)` for cards (design section 4)."""

from approvals.cards.build import card_for, questions_of, row_for
from approvals.cards.values import Card, Row

__all__ = ["Card", "Row", "card_for", "questions_of", "row_for"]

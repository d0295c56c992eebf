"""Telling the embedding application of its runs: endpoints, an outbox of deliveries, and who sends them."""

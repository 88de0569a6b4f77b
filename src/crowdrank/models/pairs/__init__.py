"""Scores and orders from preferences between two items."""

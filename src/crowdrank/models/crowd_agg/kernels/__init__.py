"""Compiled loops of this room only."""

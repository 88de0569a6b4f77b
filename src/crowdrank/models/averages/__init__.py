"""Averages and counts: Borda, means, medians and majorities."""

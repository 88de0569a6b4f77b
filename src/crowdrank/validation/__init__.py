"""How well methods predict held-out judgments, and how they compare."""

"""What is odd about annotators, items and the crowd: diagnostics, flags, findings, actions."""

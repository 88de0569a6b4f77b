"""JAM and VRJAM: which item of a pair is better, from preferences and features."""

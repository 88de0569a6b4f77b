"""Columns of recorded speech: pitch, level, spectrum and rhythm."""

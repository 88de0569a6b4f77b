"""Packed judgments, and passes over them that need little memory: streamed here, or on Dask."""

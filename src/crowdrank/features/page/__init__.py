"""Columns of web pages, from their source or as a browser shows them, and three measures of visual clutter."""

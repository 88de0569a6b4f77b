"""A ranker trained after an aggregator, or one ranker per annotator."""

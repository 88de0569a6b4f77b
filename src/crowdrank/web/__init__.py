"""The collection service: a campaign from a file, requests to people and programs, judgments kept for good."""

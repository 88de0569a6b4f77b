"""Click models: what is relevant, given what was shown where and clicked."""

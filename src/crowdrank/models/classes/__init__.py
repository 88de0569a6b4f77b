"""Which class each item belongs to: majority of weighted annotators by EM."""

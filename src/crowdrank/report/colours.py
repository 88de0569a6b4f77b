"""Colours of pictures, which the page's style knows by name."""

BLUE, ORANGE = "#0072B2", "#D55E00"
"""Two colours that colour-blind readers can distinguish, in print too (Okabe and Ito)."""

GREEN, PURPLE, SKY, AMBER = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Four more of the same palette; where a picture uses them, shapes differ too."""

GREY, INK, RULE, PAPER = "#8A8A8A", "#222222", "#D8D8D8", "#FFFFFF"
"""Of what matters less, of text and axes, of grid lines, and of what lies behind them."""

DIVERGING = ("#C9701F", "#EDB57B", "#F7F4EF", "#8FC0E2", "#2774AE")
"""From low through the middle to high."""

RISING = ("#F7F4EF", "#A9D0E8", "#4A96C9", "#15588F")
"""From nothing to all."""

SHADES = ("#F7F4EF", "#8FC0E2", "#2774AE")
"""From unlike to alike."""

NAMES = ("BLUE", "ORANGE", "GREEN", "PURPLE", "SKY", "AMBER", "GREY", "INK", "RULE", "PAPER")
"""Those that the page's style has a variable for."""

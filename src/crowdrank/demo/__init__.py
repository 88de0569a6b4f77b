"""A small data set that ships with the package: answers of twelve language models, compared by thirty annotators.

Models, prompts and annotators are made up; ``tools/draw_demo.py`` made the file. Three annotators guess
(bruno, ines, tariq) and one answers the wrong way round (olga).
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("votes.csv")
"""The preferences: query (the prompt), left and right (the models), annotator, winner, time."""

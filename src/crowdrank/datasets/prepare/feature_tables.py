"""Tables that their source keeps in another dress."""

from __future__ import annotations

from .work import Work


def wine(work: Work) -> None:
    """Put back the semicolons and the name of the last column that the original files have."""
    for file in work.terms.files:
        header, *rows = work.text(file).splitlines()
        header = header.replace(",", ";").replace('"class"', '"quality"')
        work.write(file, "\n".join([header, *(row.replace(",", ";") for row in rows)]) + "\n")

"""Every study runs, tells what it found in whole sentences, and goes on where it was."""

import pytest

from crowdrank_studies import STUDIES, VERDICTS

pytestmark = pytest.mark.slow


@pytest.mark.data
@pytest.mark.parametrize("name", STUDIES)
def test_quick_run(ran, quick, name):
    first = ran(name)
    assert first.outcome.verdicts or first.outcome.notes
    assert {verdict.verdict for verdict in first.outcome.verdicts} <= set(VERDICTS)
    assert all(verdict.reason.endswith(".") for verdict in first.outcome.verdicts)
    assert all(note.endswith(".") for note in first.outcome.notes)
    assert all(file.stat().st_size for file in first.files)
    frame = first.outcome.frame()
    assert frame["ours"].is_finite().all()
    again = quick(name)
    assert again.n_resumed > 0
    assert again.outcome.frame().equals(frame)
    assert [v.verdict for v in again.outcome.verdicts] == [v.verdict for v in first.outcome.verdicts]

"""The alternative annotator test, slowly and from its description: dictionaries, loops, one t test per person."""

from scipy.stats import ttest_1samp


def alternative_test(people, program, score, margin):
    """Winning rate and mean advantage of a program against people.

    ``people`` is person -> item -> label, ``program`` item -> label, ``score(label, label)`` how far two labels agree.
    """
    p_values, advantages = [], []
    for person in sorted(people, key=str):
        wins, losses = [], []
        for item, own in people[person].items():
            others = [people[other][item] for other in people if other != person and item in people[other]]
            if not others or item not in program:
                continue
            of_person = sum(score(own, label) for label in others) / len(others)
            of_program = sum(score(program[item], label) for label in others) / len(others)
            wins.append(of_program >= of_person - 1e-9)
            losses.append(of_person >= of_program - 1e-9)
        if not wins:
            continue
        difference = [int(loss) - int(win) for win, loss in zip(wins, losses, strict=True)]
        p_values.append(float(ttest_1samp(difference, margin, alternative="less").pvalue))
        advantages.append(sum(wins) / len(wins))
    return share_rejected(p_values), sum(advantages) / len(advantages)


def share_rejected(p_values, level=0.05):
    """Share of hypotheses that Benjamini and Yekutieli reject."""
    n = len(p_values)
    harmonic = sum(1 / k for k in range(1, n + 1))
    largest = 0
    for rank, p in enumerate(sorted(p_values), 1):
        if p <= level * rank / (n * harmonic):
            largest = rank
    return largest / n

"""Expected discounts at a Poisson-binomial rank, twice the slow way, and CrowdAgg written out pair by pair."""

from math import log2

import numpy as np


def discounts(measure, n, rho=0.95):
    """D(0), D(1), ... for ``n`` ranks."""
    return np.array([1 / log2(2 + rank) if measure == "ndcg" else rho**rank for rank in range(n)])


def by_convolution(losses):
    """Probabilities of losing 0, 1, ... contests: one contest after the other, O(n^2)."""
    chance = np.array([1.0])
    for loss in losses:
        chance = np.append(chance, 0.0) * (1 - loss) + np.append(0.0, chance) * loss
    return chance


def by_fourier(losses):
    """The same by divide and conquer, halves being multiplied by fast Fourier transforms."""
    if len(losses) < 2:
        return np.array([1 - losses[0], losses[0]]) if len(losses) else np.ones(1)
    first, second = by_fourier(losses[: len(losses) // 2]), by_fourier(losses[len(losses) // 2 :])
    n = len(first) + len(second) - 1
    return np.fft.irfft(np.fft.rfft(first, n) * np.fft.rfft(second, n), n)


def gap_probability(gap, first, second, n, judged):
    """Probability of placing the first item above the second, after the contests that both won."""
    if first == second:
        return 0.5
    if gap == "linear":
        return 0.5 + (first - second) / (2 * (judged - 1))
    share = abs(first - second) / n
    return (
        {"swapped": 1 - share, "printed": share}[gap]
        if first > second
        else {"swapped": share, "printed": 1 - share}[gap]
    )


def set_discounts(items, preferred, judged, gap, eta, discount):
    """Expected discount of each item for one annotator, less that of coins only; ``preferred`` has (winner, loser)."""
    n, won = len(items), {item: sum(winner == item for winner, _ in preferred) for item in items}
    coins = by_convolution([0.5] * (n - 1)) @ discount
    found = {}
    for item in items:
        losses = []
        for other in items:
            p = 0.5
            if (item, other) in preferred or (other, item) in preferred:
                p = gap_probability(gap, won[item], won[other], n, judged) if gap != "hard" else None
                p = float((item, other) in preferred) if p is None else p
            if other != item:
                losses.append(1 - (eta * p + (1 - eta) * (1 - p)))
        found[item] = by_convolution(losses) @ discount - coins
    return found


def pairs_of_set(kind, rows):
    """{(winner, loser): margin} of one annotator in one query: net votes, or unequal grades (ranks are negative)."""
    if kind == "preference":
        net = {}
        for left, right, won in rows:
            pair, sign = ((left, right), 1) if left < right else ((right, left), -1)
            net[pair] = net.get(pair, 0) + sign * {"left": 1, "right": -1, "tie": 0}[won]
        return {pair if votes > 0 else pair[::-1]: abs(votes) for pair, votes in net.items() if votes}
    grade = {item: value if kind == "grade" else -value for item, value in rows}
    return {(a, b): 1 for a in grade for b in grade if grade[a] > grade[b]}


def held_out_share(sheets, owner, totals):
    """Pairs of an owner that the others' totals order alike, and all of them, among items that others judged too."""
    agree = pairs = 0.0
    for key, sheet in sheets.items():
        if key[: len(owner)] != owner or not sheet["pairs"]:
            continue
        rivals = [other["pairs"] for (who, query), other in sheets.items() if query == key[1] and who != key[0]]
        covered = {item for given in rivals for pair in given for item in pair}
        for pair in sheet["pairs"]:
            if covered.issuperset(pair):
                winner, loser = (totals[key[1], item] - sheet["part"][item] for item in pair)
                agree += sheet["weight"] * (0.5 if abs(winner - loser) <= 1e-12 else float(winner > loser))
                pairs += sheet["weight"]
    return agree, pairs


def crowd_agg(kind, rows, *, gap, measure="ndcg", prior=(8.0, 2.0), per_query=False, rounds=()):
    """CrowdAgg with held-out quality by the definitions: {(query, item): score}, {owner: eta}.

    ``rows`` are (annotator, query, ...), each annotator at most once on an item. ``rounds`` are the steps of all
    rounds; without any everybody is taken to be right.
    """
    n_ids = 2 if kind == "preference" else 1
    answers, items, sheets = {}, {}, {}
    for annotator, query, *answer in rows:
        answers.setdefault((annotator, query), []).append(tuple(answer))
        items.setdefault(query, set()).update(answer[:n_ids])
    for key, given in answers.items():
        preferred = pairs_of_set(kind, given)
        judged = len({item for answer in given for item in answer[:n_ids]})
        weight = np.mean(list(preferred.values())) if preferred else 1.0
        sheets[key] = {"pairs": preferred, "judged": judged, "weight": weight, "owner": key if per_query else key[:1]}
    eta = {sheet["owner"]: prior[0] / sum(prior) if rounds else 1.0 for sheet in sheets.values()}
    for step in [*rounds, None]:
        totals = {(query, item): 0.0 for query, inside in items.items() for item in inside}
        for (_, query), sheet in sheets.items():
            if sheet["pairs"]:
                discount, trust = discounts(measure, len(items[query])), eta[sheet["owner"]]
                part = set_discounts(sorted(items[query]), sheet["pairs"], sheet["judged"], gap, trust, discount)
                sheet["part"] = {item: sheet["weight"] * value for item, value in part.items()}
                for item, value in sheet["part"].items():
                    totals[query, item] += value
        for owner in eta if step is not None else ():
            agree, pairs = held_out_share(sheets, owner, totals)
            eta[owner] += step * ((agree + prior[0]) / (pairs + sum(prior)) - eta[owner])
    return totals, eta

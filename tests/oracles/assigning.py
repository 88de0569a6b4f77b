"""Slow, obviously right: judgments given one after the other to the cheapest who can be asked."""


def possible(thing, judged, given, price, left):
    """Annotators who can still be asked about a thing, the price of the cheapest, and all of those at that price."""
    free = [a for a in range(len(price)) if left[a] > 0 and a not in judged[thing] and (thing, a) not in given]
    if not free:
        return None, []
    lowest = min(price[a] for a in free)
    return lowest, [a for a in free if price[a] == lowest]


def check(thing, gain, judged, price, capacity, budget, least, chosen, codes):
    """Walk through a choice and say of each judgment whether it is one of those that the rule allows."""
    left, given, fine = list(capacity), set(), []
    for place, of in enumerate(thing):
        lowest, cheapest = possible(of, judged, given, price, left)
        if lowest is None:
            fine.append(chosen[place] == codes["nobody"])
        elif gain[place] < least * lowest:
            fine.append(chosen[place] == codes["unworthy"])
        elif lowest > budget + 1e-9:
            fine.append(chosen[place] == codes["unaffordable"])
        else:
            fine.append(chosen[place] in cheapest)
            given.add((of, chosen[place]))
            left[chosen[place]] -= 1
            budget -= lowest
    return fine

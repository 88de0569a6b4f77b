"""Models of rankings: Plackett-Luce, Mallows, and LTRMA, which learns a ranker with them."""

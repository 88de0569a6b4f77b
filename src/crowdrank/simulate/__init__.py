"""Annotators of known quality and judgments drawn from them."""

from .answering import Recorded, SimulatedCrowd
from .campaigns import Campaign, Trained, campaign
from .click_draws import draw_clicks
from .corpora import Corpus, draw_corpus
from .designs import AllPairs, ConnectedPairs, PerItem, PerQuery, RandomPairs, RoundRobin
from .graders import Confusions, LatentGraders, confusion, false_bad, false_good, growing, profile, symmetric
from .judgments import Simulation, check_simulation, grades, preferences, rankings, simulate
from .known import CUTS, LatentTruth, draw_truth, latent_truth
from .noise import NOISES, Noise, NoiseModel, parse_noise
from .orders import CayleyMallows, Mallows, PlackettLuce, Swaps, ltrma_swaps
from .pools import Crowd, Flips, OneCoin, Pool, log_normal, normal, uniform, with_spammers

__all__ = [
    "CUTS",
    "NOISES",
    "AllPairs",
    "Campaign",
    "CayleyMallows",
    "Confusions",
    "ConnectedPairs",
    "Corpus",
    "Crowd",
    "Flips",
    "LatentGraders",
    "LatentTruth",
    "Mallows",
    "Noise",
    "NoiseModel",
    "OneCoin",
    "PerItem",
    "PerQuery",
    "PlackettLuce",
    "Pool",
    "RandomPairs",
    "Recorded",
    "RoundRobin",
    "SimulatedCrowd",
    "Simulation",
    "Swaps",
    "Trained",
    "campaign",
    "check_simulation",
    "confusion",
    "draw_clicks",
    "draw_corpus",
    "draw_truth",
    "false_bad",
    "false_good",
    "grades",
    "growing",
    "latent_truth",
    "log_normal",
    "ltrma_swaps",
    "normal",
    "parse_noise",
    "preferences",
    "profile",
    "rankings",
    "simulate",
    "symmetric",
    "uniform",
    "with_spammers",
]

"""Which way the numbers of a name count: words for something bad, and metrics that are known to fall."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..wording import option

_BAD = (
    "anomal annoy artefact artifact attack blunder churn clutter complain complaint concern confus contradict crash "
    "danger deceiv decept defect deficien delay disagree discriminat dishonest dislik disparit dissatisf distort "
    "distract downvot effort error exploit fabricat fault fraud frustrat hallucinat harass hatred hazard illegal "
    "illicit inaccura incoheren incomplet inconsisten incorrect injur insult invalid irrelevan irresponsib jailbreak "
    "jitter libel malfunction malic malware manipulat mislead mistak misuse misinformat negativ obscen offens omiss "
    "penalt phish plagiar problem profan racis redundan refus regret reject repetit sexis sexual shimmer stereotyp "
    "stress suspici sycophan threat toxic traged troubl unfair unfaithful ungrounded unhelpful unnatural unreliab "
    "unsafe unsupported untrue untruthful useless vague violat violen vulgar vulnerab warning wrong workload "
    "fehler mangel mängel nachteil risiko schaden schädlich schlecht schwäch toxizit verlust verstoß"
)
"""Beginnings of words for what nobody wants more of; ``less`` turns them into something good."""

_BAD_SHORT = "abus bad bias blam blur bug cost evas fail fake flaw gap gore harm hate lag leak lie loss nois omit pain"
_BAD_SHORT += " poor risk rude scam spam wast weak"
_ENDINGS = (
    "s|es|d|e|ed|y|ry|ful|fulness|ing|ion|ive|iveness|iness|riness|miness|ly|ness|nesses|ted|ure|ures|age|able|ability"
)
"""Short ones, and what may follow them, as much else begins so too."""

_BAD_WHOLE = "evil explicit falsehood issues loser losing missing nsfw severe severity ugly worse worst"
"""Such words that stand for themselves only."""

_FALLING = (
    "bits bpb bpc brier cer crossentropy deviation difference distance divergence duration ece edits eer entropy fid "
    "fnr fpr hter kld latency levenshtein logloss lpips mae mape mcd mse msle nll perplexity ppl rank residual rmse "
    "rmsle runtime seconds smape ter time ttft wer"
)
"""Metrics, and what is measured, of which small values are the good ones."""

_AROUND = (
    "score|scores|rate|rating|count|level|value|index|metric|prob|probability|percent|pct|ratio|label|grade|flag|mean|"
    "avg|total|max|min|num|sum|is|has|est|class|category|type|eval|zahl|quote|wert|anzahl|grad"
)
"""What a word may be written together with."""

_WORD = re.compile(
    rf"(?:{_AROUND})?(?:"
    rf"(?:{'|'.join(_BAD.split())})(?!\w*less)\w*"
    rf"|(?:{'|'.join(_BAD_SHORT.split())})(?:{_ENDINGS})?(?:{_AROUND})?"
    rf"|(?:{'|'.join((*_BAD_WHOLE.split(), *_FALLING.split()))})(?:{_AROUND})?)"
)
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: snake, camel and other cases, without numbers.

    Examples
    --------
    >>> words_of("WERScore_v2"), words_of("self-harm rating (0-2)")
    (['wer', 'score', 'v'], ['self', 'harm', 'rating'])
    """
    return re.findall(r"[^\W\d_]+", _PARTS.sub(" ", name).lower())


def bad_word(name: str) -> str | None:
    """Return the word of a name that says that small numbers may be the good ones, ``None`` where there is none.

    Examples
    --------
    >>> bad_word("error_score"), bad_word("meanToxicity"), bad_word("riskscore"), bad_word("harmlessness")
    ('error', 'toxicity', 'riskscore', None)
    """
    return next((word for word in words_of(name) if _WORD.fullmatch(word)), None)


def which_direction(names: Iterable[str], levels: Sequence[str] | None = None) -> str | None:
    """Return the question which way grades count, where a name of what is graded has a word for something bad.

    Parameters
    ----------
    names
        What is graded, by all its names: the column, the metric, the question.
    levels
        Grades in words, worst first as far as the words alone tell.

    Examples
    --------
    >>> which_direction(["value", "toxicity"])
    "small numbers of 'toxicity' are likely the good ones: small_is_good=True; if large ones are: small_is_good=False"
    >>> which_direction(["harmful"], ["no", "yes"])
    "'harmful' may be something bad; if 'no' is the best grade: small_is_good=True; if 'yes' is: small_is_good=False"
    >>> which_direction(["quality"])
    """
    name = next((name for name in names if bad_word(name)), None)
    if name is None:
        return None
    small, large = (option("small_is_good", way) for way in (True, False))
    if levels is None:
        return f"small numbers of {name!r} are likely the good ones: {small}; if large ones are: {large}"
    ends = (levels[0], levels[-1])
    return f"{name!r} may be something bad; if {ends[0]!r} is the best grade: {small}; if {ends[1]!r} is: {large}"

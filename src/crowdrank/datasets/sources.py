"""Where each data folder comes from: public repository, terms, files, and how the files are made from the source's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A place in a public repository; no repository where the numbers are the project's own."""

    repository: str
    commit: str = ""
    path: str = ""
    remark: str = ""

    def __str__(self) -> str:
        if not self.repository:
            return self.remark
        remark = f" ({self.remark})" if self.remark else ""
        return f"{self.path} of the public repository {self.repository} at commit {self.commit}{remark}"


@dataclass(frozen=True)
class Folder:
    """One folder of data: its source, licence and files.

    Parameters
    ----------
    source
        Where the files come from.
    licence
        Terms of the source.
    files
        Stored file -> file of the source, relative to the repository; empty where the stored file is derived.
    prepare
        ``module:function`` under ``crowdrank.datasets.prepare`` that makes the stored files; ``copy`` takes them as is.
    directory
        Folder below the data folder, where it is not the name itself.
    """

    source: Source
    licence: str
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: str = "copy"
    directory: str = ""


LETOR = "none stated for the data, which are Microsoft Research's LETOR, for research"
UNSTATED = "none stated"


def _same(path: str, *files: str) -> dict[str, str]:
    """Stored files that lie under one path of the source with the same names."""
    return {file: f"{path}/{file}" if path else file for file in files}


def _parts(letter: str, path: str = "") -> dict[str, str]:
    """The five partitions of a LETOR set and the table of its folds."""
    files = [f"{letter}{number}.txt" for number in range(1, 6)]
    return {**(_same(path, *files) if path else dict.fromkeys(files, "")), "folds.json": ""}


_TRUTH_AT_SCALE = "yuan-li/truth-inference-at-scale"
_PEOPLE = "zhydhkcws/crowd_truth_infer"
_VUURENS = "data/JeroenVuurens"


def _people(folder: str) -> Folder:
    """A folder of the truth inference survey, with its account ids replaced."""
    return Folder(
        Source(_PEOPLE, "8d216471071f", f"datasets/{folder}"),
        UNSTATED,
        {"answer.csv": "", "truth.csv": f"datasets/{folder}/truth.csv"},
        "crowd_labels:answers",
    )


def _preflib(folder: str, series: str, kinds: str) -> Folder:
    """A folder of PrefLib; one letter per file says whether its orders are strict (s) or have ties (t)."""
    names = [f"{series}-{number:08d}.{kind}oc" for number, kind in enumerate(kinds, 1)]
    path = f"datasets/{folder}"
    return Folder(Source("PrefLib/PrefLib-Data", "1a8e9a9d0ad0", path), "GPL-3.0 (repository)", _same(path, *names))


FOLDERS: dict[str, Folder] = {
    "letor-ohsumed": Folder(
        Source("meta-toolkit/meta", "ca344dfe6a7b", "data/OHSUMED/QueryLevelNorm", "an old commit, not the newest"),
        LETOR,
        _parts("S"),
        "letor:from_folds",
    ),
    "letor2-ohsumed": Folder(
        Source("marcosfpr/adarank", "974c0865f63b", "benchmarks/OHSUMED/Data"), LETOR, _parts("S"), "letor:from_folds"
    ),
    "letor-mq2008": Folder(
        Source("meta-toolkit/meta", "eab9748c3c40", "data/MQ2008", "an old commit, not the newest"),
        LETOR,
        _parts("S", "data/MQ2008"),
        "letor:from_partitions",
    ),
    "letor-mq2007-agg": Folder(
        Source("GeorgeSanchezTR/MRRF_Experiments", "f3600002f05a", "MQ2007-agg"),
        f"Apache-2.0 (repository); {LETOR}",
        _parts("A", "MQ2007-agg"),
        "letor:from_partitions",
    ),
    "letor-mq2008-agg": Folder(
        Source("GeorgeSanchezTR/MRRF_Experiments", "f3600002f05a", "MQ2008-agg"),
        f"Apache-2.0 (repository); {LETOR}",
        _parts("A", "MQ2008-agg"),
        "letor:from_partitions",
    ),
    "lightgbm-rank-sample": Folder(
        Source("microsoft/LightGBM", "bae0b7ba95", "examples/lambdarank"),
        "MIT",
        _same("examples/lambdarank", "rank.train", "rank.train.query", "rank.test", "rank.test.query"),
    ),
    "wine-quality": Folder(
        Source("kgolofit/MOW-14Z", "012ab2ff3e1d", "winequality-*.csv"),
        "none stated in the repository (UCI: CC BY 4.0)",
        {"winequality-red.csv": "", "winequality-white.csv": ""},
        "feature_tables:wine",
    ),
    "pendigits": Folder(
        Source("kgolofit/MOW-14Z", "f2596d1bdc2e", "pendigits.*"),
        "none stated in the repository (UCI: CC BY 4.0)",
        _same("", "pendigits.tra", "pendigits.tes"),
    ),
    "trec-rf10-labels-full": Folder(
        Source(
            _TRUTH_AT_SCALE,
            "621789b2d573",
            "data/crowd_truth_inference/s4_Relevance",
            "prepare trec-rf10-crowd-gold first, which item_topic.csv is made with",
        ),
        "MIT",
        {**_same("data/crowd_truth_inference/s4_Relevance", "label.csv", "truth.csv"), "item_topic.csv": ""},
        "trec:item_topics",
    ),
    "trec-rf10-crowd-gold": Folder(
        Source("utir/square-2.0", "af3d45bf38e2", "nFoldSets/unsupervised/HCB"),
        "MIT",
        _same("nFoldSets/unsupervised/HCB", "responses_eval.txt", "responses_gt.txt", "map_question_integer.txt"),
    ),
    "trec2011-stage2-labels": Folder(
        Source(_TRUTH_AT_SCALE, "621789b2d573", "data/SpectralMethodsMeetEM/trec"),
        "MIT",
        _same("data/SpectralMethodsMeetEM/trec", "label.csv", "truth.csv"),
    ),
    "trec2011-crowd": Folder(
        Source("ipeirotis/Get-Another-Label", "9fe6c56a7a15", _VUURENS),
        "Apache-2.0",
        {
            "votes.tsv": f"{_VUURENS}/votes",
            "otherparticipantsvotes.tsv": f"{_VUURENS}/otherparticipantsvotes",
            "task1_unlabeled_g_truth_cons_public.txt": f"{_VUURENS}/task1_unlabeled_g_truth_cons_public.txt.bz2",
        },
    ),
    "trec2011-crowd-uc3m": Folder(
        Source("julian-urbano/trec2011-crowdsourcing", "86c1d009518c", "data"),
        "CC BY-SA 4.0",
        _same("data", "assignments.txt", "hits.txt"),
    ),
    "web-search-relevance5": Folder(
        Source(_TRUTH_AT_SCALE, "621789b2d573", "data/SpectralMethodsMeetEM/web"),
        "MIT",
        _same("data/SpectralMethodsMeetEM/web", "label.csv", "truth.csv"),
    ),
    "adult-content2": Folder(
        Source("ipeirotis/Get-Another-Label", "9fe6c56a7a15", "data/AdultContent2"),
        "Apache-2.0",
        {"labels.tsv": "", "gold.tsv": ""},
        "crowd_labels:adult",
    ),
    "peer-grading": Folder(
        Source("Yuangang-Pan/Robust-Ranking-Aggregation--CoarsenRank", "3dccbedd5266", "PeerGrade_Max_Plant/read_data"),
        UNSTATED,
        _same("PeerGrade_Max_Plant/read_data", "peer.csv", "self.csv", "ta.csv"),
    ),
    "crowd-truth-inference/emotion": _people("f201_Emotion_FULL"),
    "crowd-truth-inference/dog": _people("s4_Dog data"),
    "crowd-truth-inference/face-sentiment": _people("s4_Face Sentiment Identification"),
    "crowd-truth-inference/duck": _people("d_Duck Identification"),
    "crowd-truth-inference/product": _people("d_jn-product"),
    "mirex2005-crowd": Folder(
        Source("julian-urbano/sigir2010-crowdsourcing", "ac8f16f22ccd", "data"),
        "CC BY-SA 4.0",
        _same("data", "judgments.csv", "MTurk.qrel"),
    ),
    "ukpconvarg1-crowd": Folder(
        Source("UKPLab/tacl2018-preference-convincing", "65eb1cd3bf76", "data/argument_data"),
        "Apache-2.0 (repository)",
        dict.fromkeys(("votes.csv", "gold_pairs.csv", "gold_ranking.csv", "arguments.csv"), ""),
        "preferences:convincing_arguments",
    ),
    "llmfao": Folder(
        Source("dustalov/llmfao", "9e224e94a401", "the top folder"),
        "CC BY 4.0",
        _same("", "crowd-comparisons.csv", "gpt3-comparisons.csv", "gpt4-comparisons.csv", "results.jsonl"),
    ),
    "pandalm-testset": Folder(
        Source("WeOpenML/PandaLM", "3871806e72b4", "data"),
        "Apache-2.0",
        _same("data", "testset-v1.json", "gpt-3.5-turbo-testset-v1.json", "pandalm-7b-testset-v1.json"),
    ),
    "llmbar-judges": Folder(
        Source("princeton-nlp/LLMBar", "900616bff90b", "Dataset"),
        "MIT",
        {"judgments.csv": "", "items.csv": ""},
        "preferences:llmbar",
    ),
    "webis-rag-crowd": Folder(
        Source("webis-de/sigir25-rag-crowdsourcing", "03ec5b4a4ea6", "data"),
        "CC BY 4.0",
        {
            **_same("data/raw", "study2_responses.jsonl", "study2_pointwise.jsonl"),
            **_same("data/artifacts", "grades.jsonl", "llm_ratings.jsonl"),
        },
    ),
    "wmt13-fr-en-rankings": Folder(
        Source("keisks/wmt-trueskill", "da5bb1dca229", "data"),
        UNSTATED,
        _same("data", "sample-fr-en-train.csv", "sample-fr-en-test.csv"),
    ),
    "preflib/dots": _preflib("00024 - dots", "00024", "ssss"),
    "preflib/puzzle": _preflib("00025 - puzzle", "00025", "ssss"),
    "preflib/skate": _preflib("00006 - skate", "00006", "ttssttssttsstttttsttsstttttssttssssssttttttststs"),
    "visual-clutter": Folder(
        Source("", remark="a table of numbers measured by this project and stored nowhere else"),
        "as this project",
        {"features.csv": "", "annotators.csv": ""},
    ),
    "visual-clutter-first-screen": Folder(
        Source("", remark="a table of numbers measured by this project and stored nowhere else"),
        "as this project",
        {"pages.csv": ""},
    ),
    "neural-codec-mushra": Folder(
        Source(
            "BenjSta/bernoulli-var-speech-codec",
            "49b03fe36fa0",
            "mushra_results_dataset",
            remark="the grades; the columns of the recordings were measured by this project",
        ),
        "CC BY 4.0",
        {"grades.csv": "", "features.csv": ""},
    ),
    "visual-clutter/calista": Folder(
        Source("calista-ai/website-aesthetics-datasets", "b45fb864e819", "comparison-based-dataset"),
        "MIT",
        {"calista_votes.csv": "", "calista_clutter.csv": ""},
        "preferences:calista",
        "visual-clutter",
    ),
}
"""Folder -> where it comes from."""

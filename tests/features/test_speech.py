"""Columns of speech on sounds that are made here: tones, noise, silence and clicks."""

import sys

import numpy as np
import pytest
from scipy.signal import butter, sosfilt

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, MissingExtraError
from crowdrank.features import speech_features
from crowdrank.features.speech_features import COLUMNS, speech_columns, track_pitch

soundfile = pytest.importorskip("soundfile")
RATE = 16_000


def voice(tone, seconds=1.0, rate=RATE, syllables=0.0, level=0.1):
    """Six harmonics of a pitch in Hz, with so many swells per second."""
    time = np.arange(int(seconds * rate)) / rate
    sound = sum(np.sin(2 * np.pi * tone * k * time) / k for k in range(1, 7))
    return level * sound * (1.0 if not syllables else 0.51 - 0.49 * np.cos(2 * np.pi * syllables * time))


def columns_of(samples, rate=RATE):
    return dict(zip(COLUMNS, speech_columns(np.asarray(samples, float), rate).tolist(), strict=True))


def test_there_are_75_columns():
    assert len(COLUMNS) == len(set(COLUMNS)) == 75


@pytest.mark.parametrize("tone", [90, 120, 165, 220, 310, 420])
def test_pitch_of_tones(tone):
    found = track_pitch(voice(tone))
    assert np.median(found.frequency[found.has_voice]) == pytest.approx(tone, rel=0.011)
    columns = columns_of(voice(tone, rate=44_100), 44_100)
    assert columns["pitch_p50"] == pytest.approx(12 * np.log2(tone / 100), abs=0.2)
    assert columns["voiced"] > 0.9
    assert columns["pitch_range"] < 0.2


def test_rising_pitch_has_a_slope():
    time = np.arange(2 * RATE) / RATE
    octave = 0.1 * np.sin(2 * np.pi * 120 * np.cumsum(2 ** (time / 2)) / RATE)  # one octave in two seconds
    columns = columns_of(octave)
    assert columns["pitch_slope"] == pytest.approx(6, rel=0.05)
    assert columns["pitch_range"] == pytest.approx(0.8 * 12, rel=0.1)
    assert columns["pitch_change"] == pytest.approx(0.06, rel=0.2)


def test_level_is_in_decibels():
    soft, loud = columns_of(voice(150, level=0.05)), columns_of(voice(150, level=0.1))
    for name in ("level_mean", "level_p10", "level_p50", "level_p90"):
        assert loud[name] - soft[name] == pytest.approx(20 * np.log10(2), abs=0.01)
    assert loud["level_range"] == pytest.approx(soft["level_range"], abs=0.01)


def test_syllables_and_pauses():
    spoken = voice(150, 2.0, syllables=4)
    columns = columns_of(np.concatenate([spoken, np.zeros(RATE), spoken]))
    assert columns["duration"] == 5
    assert columns["syllable_rate"] == pytest.approx(16 / 5, rel=0.1)
    assert columns["pauses_per_second"] == pytest.approx(1 / 5)
    assert columns["pause_share"] == pytest.approx(1 / 5, rel=0.1)
    assert columns["articulation_rate"] == pytest.approx(4, rel=0.1)


def test_noise_is_flat_and_has_no_pitch():
    noise = np.random.default_rng(0).normal(size=RATE) * 0.1
    hiss, tone = columns_of(noise), columns_of(voice(200))
    assert np.isnan(hiss["pitch_mean"])
    assert hiss["voiced"] == 0
    assert hiss["flatness_mean"] > 0.3 > tone["flatness_mean"]
    assert hiss["centroid_mean"] == pytest.approx(4, rel=0.05)
    assert hiss["high_band_mean"] == pytest.approx(0.5, abs=0.05)
    assert tone["harmonicity_mean"] > 25 > 5 > hiss["harmonicity_mean"]


def test_bandwidth_is_at_the_files_own_rate():
    noise = np.random.default_rng(0).normal(size=48_000)
    assert columns_of(noise, 48_000)["bandwidth"] == pytest.approx(24, abs=0.3)
    low = sosfilt(butter(20, 3400, fs=48_000, output="sos"), noise)
    assert columns_of(low, 48_000)["bandwidth"] == pytest.approx(3.4, abs=0.5)


@pytest.mark.parametrize(
    ("samples", "n_missing"),
    [(np.zeros(RATE), 9), (np.ones(1), 9), (np.eye(1, 8000, 4000)[0], 8), (np.full(RATE, 0.5), 9), (np.ones(399), 9)],
)
def test_sounds_without_a_voice_do_not_raise(samples, n_missing):
    found = np.array(list(columns_of(samples).values()))
    assert np.isnan(found).sum() == n_missing
    assert not np.isinf(found).any()


def test_the_same_bytes_twice_and_for_blocks_of_any_size(monkeypatch):
    sound = voice(130, 3.0, syllables=3) + np.random.default_rng(1).normal(size=3 * RATE) * 0.001
    first = speech_columns(sound, RATE)
    assert speech_columns(sound, RATE).tobytes() == first.tobytes()
    monkeypatch.setattr(speech_features, "_PITCH_FRAMES_AT_ONCE", 37)
    monkeypatch.setattr(speech_features, "_FRAMES_AT_ONCE", 41)
    np.testing.assert_allclose(speech_columns(sound, RATE), first, rtol=1e-9)


@pytest.fixture
def clips(tmp_path):
    """Recordings of three pitches, of which the middle one is in stereo, and silence."""
    folder = tmp_path / "clips"
    folder.mkdir()
    for name, tone in (("a.wav", 110), ("c.flac", 300)):
        soundfile.write(folder / name, voice(tone), RATE)
    stereo = np.stack([voice(180), voice(180) * 0.5], axis=1)
    soundfile.write(folder / "b.wav", stereo, RATE, subtype="DOUBLE")
    return folder


def test_recordings_in_a_folder(clips):
    made = cr.features.speech(clips)
    assert made.items.ids.to_list() == ["a.wav", "b.wav", "c.flac"]
    assert made.names == COLUMNS
    assert (np.diff(made.select(["pitch_p50"]).matrix[:, 0]) > 5).all()
    mean = np.stack([voice(180), voice(180) * 0.5], axis=1).mean(axis=1)
    # the number of threads may change the last bit of a sum
    np.testing.assert_allclose(made.matrix[1], speech_columns(mean, RATE), rtol=1e-9)
    frame = {"item": ["x", "y"], "file": [str(clips / "a.wav"), str(clips / "c.flac")]}
    np.testing.assert_array_equal(cr.features.speech(frame).matrix, made.matrix[[0, 2]])
    (clips.parent / "list.csv").write_text("item,file\nx,clips/a.wav\n")
    np.testing.assert_array_equal(cr.features.speech(clips.parent / "list.csv").matrix, made.matrix[:1])


def test_silence_is_kept_and_filled(clips):
    soundfile.write(clips / "d.wav", np.zeros(RATE), RATE)
    with pytest.warns(DataWarning, match="missing in bandwidth, pitch_mean.*: 9 values of 1 item"):
        made = cr.features.speech(clips)
    tone = made.select(["pitch_p50"]).matrix[:, 0]
    assert tone[3] == pytest.approx(tone[:3].mean())
    assert np.isnan(cr.features.speech(clips, fill=None).matrix).sum() == 9
    with pytest.warns(DataWarning, match="9 values"):
        again = cr.features.like(made, clips)
    np.testing.assert_array_equal(again.matrix, made.matrix)


@pytest.mark.parametrize(
    ("name", "write", "reason"),
    [
        ("x.wav", lambda path: path.write_bytes(b"no sound at all, but text"), "no audio that can be read"),
        ("x.wav", lambda path: path.write_bytes(b""), "the file is empty"),
        ("x.wav", lambda path: soundfile.write(path, np.zeros(1000), RATE), r"0.062 s of sound; at least 0.1 s"),
        ("x.m4a", lambda path: path.write_bytes(b"\0\0\0 ftypM4A "), "convert it to wav or flac"),
        ("x.wav", lambda path: soundfile.write(path, np.zeros(9000), 1000), "1,000 samples per second"),
        ("x.wav", lambda path: soundfile.write(path, np.full(RATE, np.nan), RATE, subtype="FLOAT"), "not numbers"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(clips, name, write, reason):
    write(clips / name)
    with pytest.raises(JudgmentError, match=rf"1 of 4 items could not be used: {name} \(.*{reason}"):
        cr.features.speech(clips)
    with pytest.warns(DataWarning, match="left out"):
        assert len(cr.features.speech(clips, on_error="skip")) == 3


@pytest.mark.parametrize("name", ["x.wav", "x.aiff", "x.au"])
def test_recordings_that_end_early_are_named(clips, name):
    path = clips / name
    soundfile.write(path, voice(150, 2.0), RATE)
    assert len(cr.features.speech(clips)) == 4
    path.write_bytes(path.read_bytes()[:32_044])
    with pytest.raises(
        JudgmentError, match=rf"{name} \(cut off: 1.00 s of the 2.00 s that its header says; copy it again"
    ):
        cr.features.speech(clips)
    with pytest.warns(DataWarning, match=f"{name}.*left out"):
        assert len(cr.features.speech(clips, on_error="skip")) == 3


@pytest.mark.parametrize("stated", [0xFFFFFFFF, 0x7FFFF000, 64_002])
def test_lengths_unknown_or_rounded_are_no_cut(clips, stated):
    path = clips / "x.wav"
    soundfile.write(path, voice(150, 2.0), RATE)
    written = bytearray(path.read_bytes())
    written[40:44] = stated.to_bytes(4, "little")
    path.write_bytes(written)
    assert cr.features.speech(clips).select(["duration"]).matrix[-1, 0] == 2


def test_long_recordings_are_refused_by_their_header(clips, monkeypatch):
    monkeypatch.setattr(speech_features, "MAX_SECONDS", 0.5)
    with pytest.raises(JudgmentError, match=r"3 of 3 items .*1 s long; at most 0.5 s"):
        cr.features.speech(clips)


def test_missing_files_are_named():
    with pytest.raises(JudgmentError, match=r"nowhere.wav \(there is no such file\)"):
        cr.features.speech({"item": ["x"], "file": ["nowhere.wav"]})


def test_without_soundfile(clips, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtraError, match=r"install crowdrank\[speech\]"):
        cr.features.speech(clips)

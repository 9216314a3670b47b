from __future__ import annotations

import subprocess
import sys

import pytest

from niah.errors import ConfigError
from niah.grid import (
    Cell,
    format_lengths,
    identity,
    is_off,
    length_label,
    off_depths,
    off_words,
    parse_depths,
    parse_lengths,
    seed_from,
)


@pytest.mark.parametrize(
    ("spec", "lengths"),
    [
        ("4k..128k", (4096, 8192, 16384, 32768, 65536, 131072)),
        ("4k,100k", (4096, 102400)),
        ("512", (512,)),
        (512, (512,)),
        ([4096, "8k"], (4096, 8192)),
        ("1M", (1048576,)),
        ("1.5k", (1536,)),
        ("3k..20k", (3072, 6144, 12288, 20480)),
        ("4k..4k", (4096,)),
        ("4k..128k:6", (4096, 8192, 16384, 32768, 65536, 131072)),
        ("4k..128k:8", (4096, 6720, 11008, 18112, 29696, 48704, 79872, 131072)),
        ("8k, 4k, 8k", (4096, 8192)),
        ("1k..4k,64k", (1024, 2048, 4096, 65536)),
    ],
)
def test_lengths(spec: str | int | list[str | int], lengths: tuple[int, ...]) -> None:
    assert parse_lengths(spec) == lengths


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("128k..4k", "'128k..4k' descends"),
        ("0", "'0' is zero"),
        ("4k,0k", "'0k' is zero"),
        ("many", "'many' is not a number"),
        ("", "'' is not a number"),
        ("-4k", "'-4k' is not a number"),
        ("4k..", "'' is not a number"),
        ("4g", "'4g' is not a number"),
        ("1.0001k", "is 1024.1 tokens"),
        ("4k..8k:1", "'1' steps"),
        ("4k..8k:x", "'x' steps"),
        ("10..12:5", "5 steps do not fit"),
        ("9999m", "more than the 1073741824"),
    ],
)
def test_bad_lengths_name_the_value(spec: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_lengths(spec)
    assert words in str(caught.value)


def test_too_many_lengths() -> None:
    with pytest.raises(ConfigError, match="1001 lengths"):
        parse_lengths(list(range(1, 1002)))


@pytest.mark.parametrize(
    ("length", "label"), [(512, "512"), (4096, "4k"), (1000, "1000"), (1048576, "1m"), (102400, "100k"), (1536, "1536")]
)
def test_label_reads_back(length: int, label: str) -> None:
    assert length_label(length) == label
    assert parse_lengths(label) == (length,)


def test_format_lengths() -> None:
    assert format_lengths((512, 4096, 1048576)) == "512,4k,1m"


@pytest.mark.parametrize(
    ("spec", "depths"),
    [
        ("11", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        (3, (0.0, 0.5, 1.0)),
        ("1", (0.5,)),
        ("2", (0.0, 1.0)),
        ("4", (0.0, 0.333333, 0.666667, 1.0)),
        ("0,50,100", (0.0, 0.5, 1.0)),
        ([0, 12.5], (0.0, 0.125)),
        ("100, 0, 0", (0.0, 1.0)),
        ("50%", (0.5,)),
        ("0.5%, 1%", (0.005, 0.01)),
        ("0,1", (0.0, 0.01)),
        ("sigmoid:3", (0.0, 0.5, 1.0)),
    ],
)
def test_depths(spec: str | int | list[float], depths: tuple[float, ...]) -> None:
    assert parse_depths(spec) == depths


def test_sigmoid_is_symmetric_and_denser_at_the_ends() -> None:
    depths = parse_depths("sigmoid:11")
    assert depths[3] == round(1 / (1 + 2.718281828459045**2), 6)
    assert all(abs(a + b - 1) < 2e-6 for a, b in zip(depths, reversed(depths), strict=True))
    assert depths[1] - depths[0] < depths[5] - depths[4]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("0", "0% for the single depth 0"),
        ("0,101", "'101' is outside 0-100"),
        ("-1,50", "'-1' is outside 0-100"),
        ("deep", "'deep' is not a number"),
        ("", "'' is not a number"),
        ("0,,50", "'' is not a number"),
        ("sigmoid:many", "'many' depths"),
        ("sigmoid:0", "'0' depths"),
        ("5000", "1 to 1001"),
        ("0,0.5,1", "write 0,50,100"),
        ("0.5", "write 50%"),
        ("nan,1", "'nan' is not a number"),
    ],
)
def test_bad_depths_name_the_value(spec: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_depths(spec)
    assert words in str(caught.value)


def test_identity_ignores_key_order_only() -> None:
    one = identity({"depth": 0.1, "kv": "int8", "nested": {"b": 1, "a": [1, 2]}})
    assert one == identity({"nested": {"a": [1, 2], "b": 1}, "kv": "int8", "depth": 0.1})
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert one != identity({"depth": 0.1, "kv": "int8", "nested": {"b": 1, "a": [2, 1]}})
    assert identity({"x": 0.1 + 0.2}) != identity({"x": 0.3})


def test_identity_is_fixed() -> None:
    # a changed value here would make every stored run owe all its cells again
    assert identity({"b": 1.0, "a": "ü"}) == "f24f574eb7010aa0"
    assert seed_from("a", 1) == 2451243937432073812


def test_identity_refuses_what_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        identity({"x": float("nan")})
    with pytest.raises(TypeError):
        identity({"x": object()})


def test_seeds_depend_on_every_part_and_the_order() -> None:
    seeds = {seed_from(), seed_from("a"), seed_from("a", 1), seed_from(1, "a"), seed_from("a1"), seed_from("a", 1.5)}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_seed_is_the_same_in_another_process() -> None:
    code = "from niah.grid import seed_from; print(seed_from('x', 3, 0.25))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(out) == seed_from("x", 3, 0.25)


def test_cell_is_a_value() -> None:
    assert Cell("int8", 4096, 0.5, 0) == Cell("int8", 4096, 0.5, 0)
    assert len({Cell("int8", 4096, 0.5, 0), Cell("int8", 4096, 0.5, 1)}) == 2


def test_depths_that_lie_elsewhere_are_told_by_their_mean() -> None:
    places = [(1024, 0.4, 0.63), (1024, 0.4, 0.65), (1024, 0.5, 0.49), (2048, 0.4, 0.43), (2048, 0.5, 0.58)]
    off = off_depths([*places, (2048, 0.5, 0.42), (4096, 0.1, 0.13), (4096, 0.2, 0.23)])
    assert [(item.length, item.depth) for item in off] == [(1024, 0.4), (2048, 0.4), (4096, 0.1), (4096, 0.2)]
    assert off[0].real == pytest.approx(0.64)
    assert off_words(off, 8) == (
        "4 of 8 lie more than 2 points from where asked: "
        "40 % at 64.0 % (1k), 40 % at 43.0 % (2k), 10 % at 13.0 % (4k) and 1 more"
    )
    assert off_words(off[:1], 8) == "1 of 8 lies more than 2 points from where asked: 40 % at 64.0 % (1k)"
    assert not is_off(0.4, 0.42)
    assert not is_off(0.4, None)

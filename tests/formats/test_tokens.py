"""Text to numbers: both ways give the same doubles, those of Python's own float."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powersum.core.errors import InputError
from powersum.formats import tokens
from powersum.formats.decimals import MIN_NORMAL
from powersum.formats.tokens import Numbers, read_numbers

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 1).map(repr),
    st.integers(0, 10**20).map(str),
    # Nineteen digits: some are more than a signed integer holds, some are not.
    st.integers(10**18, 10**19 - 1).flatmap(lambda n: st.integers(0, 19).map(lambda p: f"{str(n)[:p]}.{str(n)[p:]}")),
    st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
WORDS = st.one_of(NUMBERS, st.text("0123456789eE+-.nif_#", min_size=1, max_size=8))
BLANKS = st.sampled_from([" ", "\n", "\t\t", "\r\n", "\v", "\f  "])


def both_ways(text: bytes, start: int = 0) -> list[Numbers | str]:
    found: list[Numbers | str] = []
    for threshold in (0, 1 << 60):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "COMPILED_FROM_BYTES", threshold)
            try:
                found.append(read_numbers("f", text, start))
            except InputError as error:
                found.append(str(error))
    return found


def assert_agree(results: list[Numbers | str]) -> Numbers | str:
    compiled, plain = results
    if isinstance(compiled, str) or isinstance(plain, str):
        assert compiled == plain
    else:
        np.testing.assert_array_equal(compiled.values, plain.values)
        assert compiled.tiny == plain.tiny
    return compiled


@given(words=st.lists(NUMBERS, max_size=30), blanks=st.lists(BLANKS, min_size=31, max_size=31))
@settings(max_examples=150, deadline=None)
def test_doubles_are_correct_to_the_last_bit(words: list[str], blanks: list[str]) -> None:
    text = "".join(blank + word for blank, word in zip(blanks, [*words, ""], strict=False)).encode()
    result = assert_agree(both_ways(text))
    expected = [float(word) for word in words]
    if isinstance(result, str):
        assert "not a finite number" in result
        assert not np.isfinite(expected).all()
    else:
        normal = np.abs(expected) >= MIN_NORMAL
        assert len(result) == len(words)
        np.testing.assert_array_equal(result.values[normal], np.array(expected)[normal])


@given(words=st.lists(WORDS, max_size=12))
@settings(max_examples=250, deadline=None)
def test_both_ways_accept_and_refuse_the_same(words: list[str]) -> None:
    assert_agree(both_ways(" ".join(words).encode()))


@given(text=st.binary(max_size=60))
@settings(max_examples=150, deadline=None)
def test_both_ways_agree_on_junk(text: bytes) -> None:
    assert_agree(both_ways(text))


@pytest.mark.parametrize(
    "word",
    [
        "9007199254740993",
        "9007199254740992e22",
        "123456789012345678",
        "1234567890123456789",
        "9999999999999999999",
        "0.9300000000000000001",
        "-9.300000000000000000",
        "99999999999999999999",
        "18446744073709551616",
        "0." + "0" * 30 + "1",
        "0." + "0" * 10_000 + "1e10001",
        "1" + "0" * 10_000 + "e-10000",
        "0e99999999999999999999",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "0.1000000000000000055511151231257827021181583404541015625",
    ],
)
def test_hard_numbers(word: str) -> None:
    result = assert_agree(both_ways(word.encode()))
    assert isinstance(result, Numbers)
    if not result.tiny:
        assert result.values[0] == float(word)


def test_many_hard_words() -> None:
    rng = np.random.default_rng(5)
    values = rng.random(150_000) * 10.0 ** rng.integers(-40, 40, 150_000)
    result = assert_agree(both_ways(" ".join(map(repr, values.tolist())).encode()))
    assert isinstance(result, Numbers)
    np.testing.assert_array_equal(result.values, values)


def test_long_words_take_no_long_time() -> None:
    for word in (b"1" * 3_000_000, b"." * 3_000_000, b"1e" + b"9" * 3_000_000, b"0." + b"0" * 3_000_000 + b"1"):
        assert isinstance(assert_agree(both_ways(word)), str)


def test_starting_later() -> None:
    result: Any = assert_agree(both_ways(b"MARKOV 1 2 0.30000000000000004", 6))
    assert result.values.tolist() == [1, 2, 0.30000000000000004]


def test_small_files_need_no_compiler() -> None:
    code = (
        "import sys, pathlib, tempfile; import powersum.formats as f\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "    p = pathlib.Path(d, 'm.uai'); p.write_text('MARKOV 1 2 1 1 0 2 .5 .5'); f.read(p)\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=600).returncode == 0

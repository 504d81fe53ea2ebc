"""Models in the UAI format: what is legal, what is refused, and that writing and reading are inverse."""

from __future__ import annotations

import gzip
import io
import lzma
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powersum.core.errors import InputError
from powersum.formats import read, tokens, write
from powersum.model.model import Model
from tests.formats.helpers import assert_same, refusal, saved
from tests.strategies import models

PAIR = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 0.25 0.75\n\n6\n 1 2 3\n 4 5 6\n"


@pytest.fixture(params=["plain", "compiled"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with both ways of turning text into numbers."""
    monkeypatch.setattr(tokens, "COMPILED_FROM_BYTES", 0 if request.param == "compiled" else 1 << 60)


pytestmark = pytest.mark.usefixtures("_either_way")


def probabilities(model: Model, factor: int) -> list[float]:
    return [round(float(p), 12) for p in np.exp(model.factor(factor).log_table).ravel()]


class TestLegal:
    def test_markov(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, PAIR))
        assert not model.directed
        assert model.cardinalities.tolist() == [2, 3]
        assert model.factor(0).scope == (0,)
        assert model.factor(0).log_table.tolist() == [math.log(0.25), math.log(0.75)]
        assert model.factor(1).log_table.shape == (2, 3)
        assert model.factor(1).log_table[1, 0] == math.log(4)

    def test_bayes(self, tmp_path: Path) -> None:
        assert read(saved(tmp_path, "BAYES 1 2 1 1 0 2 .5 .5")).directed

    def test_line_breaks_mean_nothing(self, tmp_path: Path) -> None:
        expected = read(saved(tmp_path, PAIR, "a.uai"))
        assert_same(expected, read(saved(tmp_path, PAIR.replace("\n", " "), "b.uai")))
        assert_same(expected, read(saved(tmp_path, "\r\n\t ".join(PAIR.split()), "c.uai")))
        assert_same(expected, read(saved(tmp_path, "\v\f\r".join(PAIR.split()) + "\n\n", "d.uai")))

    @pytest.mark.parametrize(
        "head", ["c by hand\n", "# 3 4\n", "  # 1\n\tc 2\n", "#\n", "\r\n#x\r\n", "\ufeff", "c\rc\r"]
    )
    def test_comments(self, tmp_path: Path, head: str) -> None:
        expected = read(saved(tmp_path, PAIR, "a.uai"))
        assert_same(expected, read(saved(tmp_path, head + PAIR, "b.uai")))

    def test_comments_behind_numbers(self, tmp_path: Path) -> None:
        text = PAIR.replace("\n", "   # 1 2 3\n")
        assert "# 1 2 3" in text
        assert_same(read(saved(tmp_path, text)), read(saved(tmp_path, PAIR, "plain.uai")))

    def test_comments_between_and_at_the_end(self, tmp_path: Path) -> None:
        text = PAIR.replace("\n\n", "\nc 1 2 3\n# 4\n\n").rstrip("\n") + "\n# the end"
        assert_same(read(saved(tmp_path, PAIR, "a.uai")), read(saved(tmp_path, text, "b.uai")))

    def test_empty_scopes_are_constants(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, "MARKOV 1 2 3 0 1 0 0  1 0.5  2 1 3  1 4"))
        assert [model.factor(k).scope for k in range(3)] == [(), (0,), ()]
        assert [probabilities(model, k) for k in range(3)] == [[0.5], [1, 3], [4]]

    def test_cardinality_one(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, "MARKOV 2 1 2 1 2 0 1 2 1 0"))
        assert model.factor(0).log_table.shape == (1, 2)
        assert model.factor(0).log_table[0, 1] == -np.inf

    def test_repeated_scopes_and_lonely_variables(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, "MARKOV 3 2 2 9 2 2 0 1 2 0 1 4 1 1 1 1 4 2 2 2 2"))
        assert model.n_factors == 2
        assert model.scope_variables.tolist() == [0, 1, 0, 1]

    @pytest.mark.parametrize("content", ["MARKOV 0 0", "MARKOV 2 2 2 0", "MARKOV 0 1 0 1 7"])
    def test_next_to_nothing(self, tmp_path: Path, content: str) -> None:
        path = saved(tmp_path, content)
        write(read(path), tmp_path / "copy.uai")
        assert_same(read(path), read(tmp_path / "copy.uai"))

    @pytest.mark.parametrize(
        "entry", ["1", "1.", ".5", "+2", "1e-05", "1E+5", "00.10", "-0", "-0.0e7", "1e22", "1e23", "0e-999"]
    )
    def test_ways_to_write_a_number(self, tmp_path: Path, entry: str) -> None:
        model = read(saved(tmp_path, f"MARKOV 0 1 0 1 {entry}"))
        with np.errstate(divide="ignore"):
            assert model.log_values[0] == np.log(abs(float(entry)))

    def test_numbers_too_small_for_a_double_are_not_zero(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, "MARKOV 1 5 1 1 0 5 1e-400 25e-5000 5e-324 0 7e-324"))
        expected = np.log([1, 2.5, 5, 1, 7]) + np.array([-400, -4999, -324, -np.inf, -324]) * np.log(10)
        np.testing.assert_allclose(model.log_values, expected, rtol=1e-15)

    @pytest.mark.parametrize(
        ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".GZ", gzip.compress)]
    )
    def test_compressed(self, tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
        packed = saved(tmp_path, pack(PAIR.encode()), "m.uai" + suffix)
        assert_same(read(saved(tmp_path, PAIR)), read(packed))


class TestRefused:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("", "is empty"),
            (" \n# only a comment\n", "is empty"),
            ("2 2 2", "token 1: 2 is neither MARKOV nor BAYES"),
            ("HELLO 1", "token 1: HELLO is neither"),
            ("MARKOV", "ends after 1 tokens, before the number of variables"),
            ("MARKOV x", "token 2 (line 1): x is not a finite number"),
            ("MARKOV\n-1", "token 2 (line 2): the number of variables must be a whole number ≥ 0, not -1"),
            ("MARKOV 1.5 2", "token 2 (line 1): the number of variables must be a whole number ≥ 0, not 1.5"),
            ("MARKOV 1000000000000 2 2", "token 2 (line 1): 1000000000000 variables declared, but only 2 tokens"),
            ("MARKOV 1e300 2 2", "token 2 (line 1): the number of variables must be a whole number ≥ 0, not 1e300"),
            ("MARKOV 2 2", "token 2 (line 1): 2 variables declared, but only 1 tokens follow"),
            ("MARKOV 2 2 0 0", "token 4 (line 1): variable 1 has 0 states: it needs at least 1"),
            ("MARKOV 1 2", "ends after 3 tokens, before the number of factors"),
            ("MARKOV 1 2 1000000000000 1 0", "token 4 (line 1): 1000000000000 factors declared, but only 2 tokens"),
            ("MARKOV 1 2 2 1 0", "ends after 6 tokens, before the scope of factor 1"),
            ("MARKOV 2 2 2 1 2 0", "ends after 7 tokens, before the last scope is complete"),
            ("MARKOV 1 2 1 2 0 0 4 1 1 1 1", "factor 0: a scope of 2 variables: expected a whole number from 0 to 1"),
            ("MARKOV 1 2 1 0.5 0", "token 5 (line 1): factor 0: a scope of 0.5 variables"),
            ("MARKOV 1 2 1 1 1 2 1 1", "token 6 (line 1): factor 0: variable 1 is out of range 0 to 0"),
            ("MARKOV 1 2 1 1 -1 2 1 1", "token 6 (line 1): factor 0: variable -1 is out of range 0 to 0"),
            ("MARKOV 2 2 2 2 1 0 2 1 1 4 1 1 1 1", "token 10 (line 1): factor 1: variable 1 appears twice"),
            ("MARKOV 1 2 1 1 0", "ends after 6 tokens, before the table of factor 0"),
            ("MARKOV 1 2 1 1 0 3 1 1 1", "token 7 (line 1): factor 0: a table of 3 entries, but its scope asks for 2"),
            ("MARKOV 1 2 2 1 0 0 2 1 1 2 1 1", "token 11 (line 1): factor 1: a table of 2 entries, but its scope asks"),
            ("MARKOV 1 2 1 1 0 2 1", "ends after 8 tokens, before the table of factor 0 is complete: 1 of 2 entries"),
            ("MARKOV 1 2 1 1 0 2 1 1 5", "token 10 (line 1): 5 is surplus: the last table is complete, 1"),
            ("MARKOV 1 2 0 5 5", "token 5 (line 1): 5 is surplus: the last table is complete, 2 tokens are left"),
            ("MARKOV 1 2 2 1 0 1 0\n2 1 1\n2 1 -0.5", "token 14 (line 3): factor 1, entry 1: -0.5 is negative"),
            ("MARKOV 1 2 1 1 0 2 1 -1e-400", "factor 0, entry 1: -1e-400 is negative"),
            ("MARKOV 1 2 1 1 0 2 nan 1", "token 8 (line 1): nan is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 INF", "token 9 (line 1): INF is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 1e999", "token 9 (line 1): 1e999 is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 1e-99999999999999999999", "token 9 (line 1): 1e-99999999999999999999 is too"),
            ("MARKOV 1 2 1 1 0 2 1 1_0", "token 9 (line 1): 1_0 is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 0x1", "token 9 (line 1): 0x1 is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 1e", "token 9 (line 1): 1e is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 .", "token 9 (line 1): . is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 1-1", "token 9 (line 1): 1-1 is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 # 1", "ends after 8 tokens, before the table of factor 0 is complete: 1 of 2"),
            ("MARKOV 1 2 1 1 0 2 1 1 c note", "token 10 (line 1): c is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 \u0661", r"token 9 (line 1): \xd9\xa1 is not a finite number"),
            ("MARKOV 1 2 1 1 0 2 1 " + "7" * 400, "token 9 (line 1): 77777777777777777777777777777777… is not a"),
        ],
    )  # fmt: skip
    def test_content(self, tmp_path: Path, content: str, said: str) -> None:
        assert said in refusal(read, saved(tmp_path, content))

    @pytest.mark.parametrize(
        "content",
        [
            # Ten variables of 10^30 states, sizes that do not fit any integer, and 10^12 entries with a matching size.
            "MARKOV 10" + " 1000000000000000" * 10 + " 1 10 0 1 2 3 4 5 6 7 8 9 0",
            "MARKOV 80" + " 999999" * 80 + " 1 80 " + " ".join(map(str, range(80))) + " 4",
            "MARKOV 2 1000000 1000000 1 2 0 1 1000000000000 0.5 0.5",
        ],
    )
    def test_sizes_beyond_the_file(self, tmp_path: Path, content: str) -> None:
        assert "factor 0" in refusal(read, saved(tmp_path, content))

    def test_binary_junk(self, tmp_path: Path) -> None:
        junk = np.random.default_rng(0).bytes(5000)
        assert "neither MARKOV nor BAYES" in refusal(read, saved(tmp_path, junk))
        assert "is not a finite number" in refusal(read, saved(tmp_path, b"MARKOV 2 " + junk))
        assert "is not a finite number" in refusal(read, saved(tmp_path, b"MARKOV 2 2\x002 0"))

    def test_files(self, tmp_path: Path) -> None:
        assert "No such file" in refusal(read, tmp_path / "missing.uai")
        (tmp_path / "folder.uai").mkdir()
        assert "directory" in refusal(read, tmp_path / "folder.uai")
        assert "read are .uai, .psm, .bif" in refusal(read, saved(tmp_path, PAIR, "model.txt"))
        assert "read are .uai, .psm, .bif" in refusal(read, saved(tmp_path, PAIR, "model.gz"))
        with pytest.raises(InputError, match="null"):
            read("a\0.uai")

    def test_names_stay_on_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            read(tmp_path / "two\nlines.uai")
        assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
    def test_damaged_compression(self, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
        suffix = ".uai.gz" if pack is gzip.compress else ".uai.xz"
        whole = bytearray(pack(PAIR.encode()))
        flipped = whole.copy()
        flipped[len(whole) // 2] ^= 0x55
        for number, content in enumerate([whole[:-9], whole[:8], flipped, PAIR.encode(), whole + b"more"]):
            message = refusal(read, saved(tmp_path, bytes(content), f"{number}{suffix}"))
            assert "damaged" in message or "cannot be read" in message
        assert "is empty" in refusal(read, saved(tmp_path, pack(b""), "e" + suffix))

    def test_compressed_bomb(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("powersum.core.files.MAX_BYTES", 1 << 20)
        path = saved(tmp_path, gzip.compress(bytes(1 << 22)), "bomb.uai.gz")
        assert "too much" in refusal(read, path)


class TestWriting:
    @given(model=models())
    @settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_round_trip(self, tmp_path: Path, model: Model) -> None:
        write(model, tmp_path / "m.uai")
        assert_same(model, read(tmp_path / "m.uai"))

    @given(values=st.lists(st.floats(0, allow_infinity=False, allow_nan=False), min_size=1, max_size=20))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_any_double_round_trips(self, tmp_path: Path, values: list[float]) -> None:
        model = Model.from_factors([len(values)], [((0,), values)])
        write(model, tmp_path / "m.uai")
        assert_same(model, read(tmp_path / "m.uai"))

    @given(logs=st.lists(st.floats(-2e6, -709), min_size=1, max_size=20))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_logs_below_every_double_round_trip(self, tmp_path: Path, logs: list[float]) -> None:
        model = Model.from_factors([len(logs)], [((0,), logs)], log=True)
        write(model, tmp_path / "m.uai")
        assert_same(model, read(tmp_path / "m.uai"))

    @given(logs=st.lists(st.floats(-700, 700), min_size=1, max_size=20))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_any_log_comes_back_nearly(self, tmp_path: Path, logs: list[float]) -> None:
        model = Model.from_factors([len(logs)], [((0,), logs)], log=True)
        write(model, tmp_path / "m.uai")
        np.testing.assert_allclose(read(tmp_path / "m.uai").log_values, logs, rtol=1e-15, atol=1.5e-16)

    @pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
    def test_compressed(self, tmp_path: Path, suffix: str) -> None:
        model = read(saved(tmp_path, PAIR))
        path = tmp_path / f"copy.uai{suffix}"
        write(model, path)
        assert_same(model, read(path))
        content = path.read_bytes()
        write(model, path)
        assert path.read_bytes() == content
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["m.uai", path.name])

    def test_looks_as_usual(self, tmp_path: Path) -> None:
        model = Model.from_factors([2, 2], [((), 0.1), ((1, 0), [0.6, 0.4, 1e-5, 0])], directed=True)
        write(model, tmp_path / "m.uai")
        expected = "BAYES\n2\n2 2\n2\n0\n2 1 0\n\n1\n0.1\n\n4\n0.6 0.4 1e-05 0\n"
        assert (tmp_path / "m.uai").read_text() == expected

    def test_unwritable(self, tmp_path: Path) -> None:
        model = read(saved(tmp_path, PAIR))

        def refused(path: Path) -> str:
            return refusal(lambda p: write(model, p), path)

        assert "cannot be written" in refused(tmp_path / "no" / "folder.uai")
        assert "cannot be written" in refused(tmp_path / "m.uai" / "below.uai")
        (tmp_path / "folder.uai").mkdir()
        assert "cannot be written" in refused(tmp_path / "folder.uai")
        assert "written are .uai, .psm, .bif" in refused(tmp_path / "m.txt")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.uai", "m.uai"]

    @pytest.mark.parametrize("log", [800.0, -1e9])
    def test_beyond_the_format(self, tmp_path: Path, log: float) -> None:
        model = Model.from_factors([], [((), log)], log=True)
        with pytest.raises(InputError, match=r"too (large|small)"):
            write(model, tmp_path / "m.uai")
        assert not list(tmp_path.iterdir())

    def test_a_failure_keeps_what_was_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = saved(tmp_path, PAIR)
        model = read(path)

        def full(self: io.BytesIO, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        class FullDisk(io.BytesIO):
            write = full  # type: ignore[assignment]

        monkeypatch.setattr("powersum.core.files.open", lambda *_: FullDisk(), raising=False)
        message = refusal(lambda p: write(model, p), path)
        assert message == "cannot be written (No space left on device)"
        monkeypatch.undo()
        assert path.read_text() == PAIR

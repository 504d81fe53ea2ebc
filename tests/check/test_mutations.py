"""Ten thousand damaged certificates: each is refused in one line, or what it proves is true all the same."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import powersum_check as pc
from tests.check.graphs import Graph
from tests.check.helpers import question_of, random_draft, to_check, truth
from tests.check.test_kinds import random_box
from tests.check.writer import Array, Draft, Setting, context_arrays, core_arrays, no_tree, parts_by, tree_arrays

CLOSE = 1e-9
ROUNDS, EACH = 25, 400
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 1e-31, 1e300, -1e300, 1e16, math.nan, math.inf, -math.inf]


def sound_draft(rng: np.random.Generator) -> Draft:
    """A certificate with several kinds of steps, which claims exactly what it proves."""
    draft = random_draft(rng, n_variables=4)
    setting = Setting.of(draft)
    order = setting.random_order(rng)
    exact = bool(rng.random() < 0.3)
    tree = tree_arrays(rng, setting, order, strict=True, exact=exact)
    draft.step("tree", tree)
    if rng.random() < 0.5:
        share, settled = float(rng.choice([0.3, 1.0])), float(rng.choice([0.0, 0.3]))
        draft.step("tree", tree | context_arrays(rng, setting, order, tree, share=share, settled=settled))
    if rng.random() < 0.5:
        draft.step("tree", tree_arrays(rng, setting, setting.random_order(rng)))
    if order and rng.random() < 0.5:
        v = order[-1]
        parts: dict[int, list[int]] = {}
        for s in setting.domains[v]:
            part = Setting.of(draft, [[s] if u == v else list(d) for u, d in enumerate(setting.domains)])
            arrays = tree_arrays(rng, part, [u for u in order if u in part.free or rng.random() < 0.5])
            parts[draft.step("tree", arrays | {"box": np.array([[v, s]])})] = [s]
        draft.step("cover", {"parts": parts_by(v, parts)})
    if rng.random() < 0.5:
        part = Setting.of(draft, random_box(rng, draft))
        arrays = tree_arrays(rng, part, part.random_order(rng), exact=True)
        draft.step("tree", arrays | {"box": part.box_rows()})
    if rng.random() < 0.3:
        draft.step("mean-field", no_tree(draft) | {"q": rng.random(sum(len(d) for d in setting.domains))})
    if rng.random() < 0.3:
        draft.step("mean-field", core_arrays(rng, setting, [v for v in setting.free if rng.random() < 0.6]))
    if len({draft.weights[v] for v in setting.free}) == 1 and rng.random() < 0.7:
        draft.step("conditioning", Graph(rng, setting).arrays(setting))
    verified = pc.check(to_check(draft.model), question_of(draft), draft.zip())
    numbers = (verified.log_lower, verified.log_upper)
    lower, upper = (x if math.isfinite(x) else str(x) for x in numbers)
    draft.claim = {"log_lower": lower, "log_upper": upper}
    return draft


def change_number(rng: np.random.Generator, draft: Draft) -> None:
    """One entry of one array becomes another."""
    name = str(rng.choice(sorted(draft.arrays)))
    array = draft.arrays[name].copy()
    if not array.size:
        return
    flat = array.reshape(-1)
    at = int(rng.integers(0, flat.size))
    if array.dtype.kind == "f":
        old = float(flat[at])
        choices = [old * 0.999, old * 1.5, -old, old + 1e-9, old - 0.1, float(rng.choice(NUMBERS))]
        with np.errstate(over="ignore"):
            flat[at] = choices[int(rng.integers(0, len(choices)))]
    else:
        other = int(rng.choice([-1, 0, 1, 2, 3, 5, 100, int(flat[at]) + 1, int(flat[at]) - 1]))
        flat[at] = other if np.iinfo(array.dtype).min <= other else 0
    draft.arrays[name] = array


def change_array(rng: np.random.Generator, draft: Draft) -> None:
    """One array is lost, cut, lengthened, mixed, of another type, or another's."""
    name = str(rng.choice(sorted(draft.arrays)))
    array = draft.arrays[name]
    shuffled: Array = rng.permutation(array, axis=0)
    changed: list[Callable[[], Array]] = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: shuffled,
        lambda: array[::-1],
        lambda: array.astype(np.float32),
        lambda: array.reshape(-1, 1),
        lambda: draft.arrays[str(rng.choice(sorted(draft.arrays)))],
        lambda: np.asfortranarray(np.stack([array, array])),
    ]
    choice = int(rng.integers(0, len(changed) + 1))
    if choice == len(changed):
        del draft.arrays[name]
    else:
        draft.arrays[name] = changed[choice]()


def change_head(rng: np.random.Generator, draft: Draft) -> None:
    """Something in the list of steps or in the claim is otherwise."""
    choice = int(rng.integers(0, 7))
    if choice == 0:
        del draft.steps[int(rng.integers(0, len(draft.steps)))]
    elif choice == 1:
        draft.steps[int(rng.integers(0, len(draft.steps)))] = {
            "kind": str(rng.choice(["tree", "cover", "mean-field", "conditioning"]))
        }
    elif choice == 2:
        step = draft.steps[int(rng.integers(0, len(draft.steps)))]
        odd: list[Any] = [0, 1, -1, 99, None, "0", 1.0, True, [], [0], [0, 0], [99], {}]
        step["kind"] = odd[int(rng.integers(0, len(odd)))]
    elif choice == 3:
        rng.shuffle(draft.steps)
    elif choice == 4:
        draft.assignment = [[int(rng.integers(0, 5)), int(rng.integers(0, 3))]]
    else:
        name = str(rng.choice(["log_lower", "log_upper"]))
        if isinstance(draft.claim[name], float):
            better = 1.0 if name == "log_lower" else -1.0
            draft.claim[name] += better * float(rng.choice([1e-7, 1e-3, 1.0, 100.0]))


def change_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes flipped, lost or put in."""
    changed = bytearray(data)
    choice = int(rng.integers(0, 4))
    if choice == 0:
        return bytes(changed[: int(rng.integers(0, len(changed)))])
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(changed)))
        if choice == 1:
            changed[at] ^= 1 << int(rng.integers(0, 8))
        elif choice == 2:
            changed[at : at + int(rng.integers(1, 9))] = b""
        else:
            changed[at:at] = rng.bytes(int(rng.integers(1, 9)))
    return bytes(changed)


def outcome(model: pc.Model, question: pc.Question, data: bytes) -> tuple[pc.Verified | None, str]:
    """What is verified, or the line that says why nothing is."""
    try:
        return pc.check(model, question, data, memory=10**7), ""
    except pc.CheckError as error:
        return None, str(error)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_damaged_certificates_prove_nothing_false(number: int) -> None:
    rng = np.random.default_rng(number)
    refused = accepted = 0
    while refused + accepted < EACH:
        sound = sound_draft(rng)
        model, question, value = to_check(sound.model), question_of(sound), truth(sound)
        for _ in range(40):
            draft = copy.deepcopy(sound)
            kind = rng.random()
            for _ in range(int(rng.integers(1, 3))):
                change = change_number if kind < 0.5 else change_array if kind < 0.7 else change_head
                if kind < 0.9 and draft.steps and draft.arrays:
                    change(rng, draft)
            data = draft.zip()
            if kind >= 0.9:
                data = change_bytes(rng, data)
            verified, line = outcome(model, question, data)
            if verified is None:
                assert "\n" not in line
                refused += 1
                continue
            accepted += 1
            assert verified.log_lower <= value + CLOSE
            assert verified.log_upper >= value - CLOSE
            lower, upper = (float(x) for x in (draft.claim["log_lower"], draft.claim["log_upper"]))
            assert lower <= value + CLOSE
            assert upper >= value - CLOSE
    assert accepted > EACH / 50
    assert refused > EACH / 4


@pytest.mark.parametrize("seed", range(30))
def test_claims_better_than_the_proof_are_refused(seed: int) -> None:
    draft = sound_draft(np.random.default_rng(1000 + seed))
    model, question = to_check(draft.model), question_of(draft)
    verified = pc.check(model, question, draft.zip())
    for name, value, better in (
        ("log_lower", verified.log_lower, math.inf),
        ("log_upper", verified.log_upper, -math.inf),
    ):
        if math.isfinite(value):
            claim = draft.claim[name]
            draft.claim[name] = math.nextafter(value, better)
            with pytest.raises(pc.Rejected, match=r"claims .* and proves"):
                pc.check(model, question, draft.zip())
            draft.claim[name] = claim

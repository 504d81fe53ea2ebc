"""The questions of each figure: real instances where there is a folder of them, else generated ones like them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from powersum.core.errors import InputError
from powersum.generate import diagnosis, pedigree
from powersum.model.model import Model

FIGURE_3 = (1, 7, 9)
SUPPLEMENT_C = (13, 18, 19, 20, 23, 30)
FAMILIES = {
    1: (17, 5),
    7: (34, 8),
    9: (36, 8),
    13: (34, 8),
    18: (38, 8),
    19: (29, 7),
    20: (22, 5),
    23: (21, 5),
    30: (41, 8),
}
"""People and loci of a generated family about as large as each pedigree."""


@dataclass(frozen=True, slots=True)
class PaperQuestion:
    """A model and what is maximised."""

    key: str
    title: str
    model: Model
    query: list[int]


def check_folder(data: Path | None) -> None:
    """Refuse a folder that does not hold the instances."""
    if data is not None and not (data / "pedigree" / "pedigree1.uai").is_file():
        raise InputError(f"{data}: no instances are there: pedigree/pedigree1.uai is missing")


def diagnostic(data: Path | None, seed: int) -> list[PaperQuestion]:
    """Figure 2: two generated networks of the paper's sizes, and real diagnostic models beside them."""
    questions = []
    for variables, states in ((203, 7), (359, 6)):
        model, query = diagnosis(variables, states=states, seed=seed)
        title = f"generated diagnosis, {variables} variables, ≤ {states} states"
        questions.append(PaperQuestion(f"diagnosis{variables}", title, model, query))
    if data is not None:
        from powersum import formats

        model = formats.read(data / "bayes" / "cpcs360.uai")
        query = half_of(model, seed)
        questions.append(PaperQuestion("cpcs360", f"cpcs360, {model.n_variables} variables", model, query))
        questions += [_read(data / "promedas", name, "I1") for name in ("or_chain_10.fg", "or_chain_111.fg")]
    return questions


def pedigrees(data: Path | None, numbers: tuple[int, ...], seed: int) -> list[PaperQuestion]:
    """Figure 3 and supplement C."""
    if data is not None:
        return [_read(data / "pedigree", f"pedigree{n}", "I1") for n in numbers]
    questions = []
    for n in numbers:
        people, loci = FAMILIES[n]
        model, query = pedigree(people, loci, alleles=5, seed=seed + n)
        title = f"generated family of {people}, {loci} loci, {model.n_variables} variables"
        questions.append(PaperQuestion(f"family{n}", title, model, query))
    return questions


def half_of(model: Model, seed: int, share: float = 0.5) -> list[int]:
    """A share of the undecided variables, drawn so that larger shares contain smaller ones."""
    free = np.flatnonzero(model.cardinalities > 1)
    drawn = np.random.default_rng(seed).permutation(free)
    return [int(v) for v in drawn[: round(share * len(free))]]


def ising_grid(side: int, variance: float, seed: int) -> Model:
    """An Ising grid: fields and couplings drawn from a normal distribution of this variance."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.column_stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()]),
            np.column_stack([cells[:-1].ravel(), cells[1:].ravel()]),
        ]
    )
    spin = np.array([1.0, -1.0])
    fields = [((v,), rng.normal(0.0, variance**0.5) * spin) for v in range(cells.size)]
    couplings = [((int(a), int(b)), rng.normal(0.0, variance**0.5) * np.outer(spin, spin)) for a, b in pairs]
    return Model.from_factors([2] * cells.size, [*fields, *couplings], log=True)


def _read(folder: Path, name: str, query: str) -> PaperQuestion:
    from powersum import formats

    model = formats.read(folder / f"{name}.uai")
    chosen = list(formats.read_query(folder / f"{name}.Q0.5.{query}.map", model))
    return PaperQuestion(
        name, f"{name.removesuffix('.fg')}, {model.n_variables} variables", model, [int(v) for v in chosen]
    )

"""Where the real instances are found; the tests look here, too."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("POWERSUM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def model_file(family: str, name: str) -> Path:
    """The file of a model, compressed or not."""
    plain = DATA / family / f"{name}.uai"
    return plain if plain.is_file() else plain.with_name(plain.name + ".gz")


def model_files(family: str) -> list[Path]:
    """The files of all models of a family (``*`` for all), compressed or not."""
    return sorted([*DATA.glob(f"{family}/*.uai"), *DATA.glob(f"{family}/*.uai.gz")])

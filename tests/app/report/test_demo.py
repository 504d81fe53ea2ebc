"""The demo runs as shipped."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo.py"


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(DEMO), run_name="__main__")
    out = capsys.readouterr().out
    assert "That is guaranteed." in out
    assert "out/demo.png" in out
    assert (DEMO.parent.parent / "out" / "demo.png").is_file()

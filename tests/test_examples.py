"""Every example runs as shipped, says what its page says, and draws its picture; none is longer than a screen."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest

import powersum as ps
from tests.clock import Ticks

ROOT = Path(__file__).resolve().parents[1]

SAID = {
    "diagnosis": ["width 3", "'cancer': 'no', 'bronchitis': 'yes', 'asthma': 'no'", "cancer: 52%", "bronchitis: 57%"],
    "influence": ["test: yes", "drill if bad: no", "drill if fair: yes", "expected gain: 22.50 thousand (optimal)"],
    "linkage": ["A family of 24 people", "none has more than -7"],
    "robust_plan": ["right right right", "ends at cell 5 with probability 0.7120; optimal"],
    "segmentation": ["2304 pixels, 3 labels.", "34.8% pixel by pixel"],
}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes by looking at it: what an example says does not depend on how busy the machine is."""
    monkeypatch.setattr(time, "monotonic", Ticks(2e-3))


@pytest.mark.parametrize("name", SAID)
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    picture = ROOT / "out" / f"{name}.png"
    picture.unlink(missing_ok=True)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    for text in SAID[name]:
        assert text in out
    assert picture.stat().st_size > 5000


def test_learning_in_small(capsys: pytest.CaptureFixture[str]) -> None:
    """As shipped it takes a minute: here with two smaller pictures to learn from, where summing wins, too."""
    source = (ROOT / "examples" / "learning.py").read_text(encoding="utf-8")
    small = source.replace("SHADES, PLAIN = 12, 3, 5,", "SHADES, PLAIN = 9, 3, 2,")
    assert small != source
    picture = ROOT / "out" / "learning.png"
    picture.unlink(missing_ok=True)
    exec(
        compile(small, "learning.py", "exec"),
        {"__name__": "__main__", "__file__": str(ROOT / "examples" / "learning.py")},
    )
    out = capsys.readouterr().out
    wrong = {way: float(share.rstrip("% wrong")) for way, share in (line.split(": ") for line in out.splitlines())}
    assert list(wrong) == ["pseudo-likelihood", "joint margin", "margin", "likelihood"]
    assert wrong["margin"] < min(wrong["pseudo-likelihood"], wrong["joint margin"])
    assert picture.stat().st_size > 2000


@pytest.mark.parametrize("name", [*SAID, "learning"])
def test_short_and_on_a_page(name: str) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert source.count("\n") < 65
    page = (ROOT / "docs" / "examples" / f"{name}.md").read_text(encoding="utf-8")
    assert f'"examples/{name}.py"' in page
    assert f"../images/{name}.png" in page
    assert (ROOT / "docs" / "images" / f"{name}.png").is_file()


def test_the_notebook_runs_as_shipped() -> None:
    """Every cell, in a kernel of its own; it is shipped without outputs, so that none can be old."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = ROOT / "examples" / "first_look.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    nbclient.NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(path.parent)}}).execute()
    said = "".join(output.get("text", "") for cell in cells for output in cell.outputs)
    model = ps.read(ROOT / "examples" / "clinic.bif")
    answer = ps.solve(model, ["cancer", "bronchitis", "asthma"], evidence={"dyspnoea": "yes", "smoker": "yes"})
    assert f"{dict(answer.assignment)} {answer.probability} optimal" in said
    assert "≤ log value ≤" in said
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)

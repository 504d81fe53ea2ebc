"""``powersum solve --workers``, here and on a cluster: answers and proofs as by one process; clear refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import powersum as ps
from powersum.formats import write_query
from powersum_check.__main__ import main
from tests.app.cli.conftest import Command
from tests.cluster.machines import environment, eventually, kill, machines, own_workers, runs
from tests.oracle import exact_value


def test_a_proof_by_two_processes(
    command: Command, model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof, out, query = tmp_path / "proof.zip", tmp_path / "out.json", f"{model_file}.query"
    ran = command(
        "solve", model_file, "--query", query, "--workers", 2, "--time", 300, "--certificate", proof, "--json", out
    )
    assert ran.code == 0, ran.err
    assert f"wrote {proof}" in ran.out
    model = ps.read(model_file)
    weights = np.ones(model.n_variables)
    weights[ps.read_query(query)] = 0.0
    data = json.loads(out.read_text())
    assert data["status"] == "optimal"
    assert data["options"]["workers"] == 2
    assert data["log_lower"] == pytest.approx(exact_value(model, weights), abs=1e-6)
    assert main([str(model_file), "--query", query, str(proof)]) == 0
    assert "verified" in capsys.readouterr().out


def test_a_cluster(command: Command, model_file: Path, tmp_path: Path) -> None:
    out, query = tmp_path / "out.json", f"{model_file}.query"
    with machines(tmp_path, 1) as here:
        # A certificate is never made on the short road, which would need nobody.
        ran = command(
            "solve", model_file, "--query", query, "--workers", here.address, "--time", 300,
            "--certificate", tmp_path / "proof.zip", "--json", out, "--quiet",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    assert json.loads(out.read_text())["options"]["workers"] == 1
    alone = command("solve", model_file, "--query", query, "--quiet")
    assert [float(x) for x in ran.out.split()] == pytest.approx([float(x) for x in alone.out.split()], abs=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workers", "two"), "--workers is 'two': give a number of processes"),
        (("--workers", 2, "--uai", "x"), "give --uai or --workers, not both"),
        (("--workers", "tcp://127.0.0.1:1", "--certificate", "proof.zip"), "no scheduler at tcp://127.0.0.1:1"),
    ],
)
def test_what_does_not_go_is_one_line(
    words: tuple[object, ...], said: str, command: Command, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powersum.cluster.dask_workers.CONNECT_SECONDS", 1)
    monkeypatch.chdir(model_file.parent)
    ran = command("solve", model_file, "--query", f"{model_file}.query", *words)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_killed_client_leaves_no_process(tmp_path: Path) -> None:
    model, query = ps.generate.grid(30, 30, strength=2.0, seed=1)
    path = tmp_path / "hard.uai"
    ps.write(model, path)
    write_query(query, f"{path}.query")
    command = [sys.executable, "-m", "powersum", "solve", str(path), "--query", f"{path}.query", "--workers", "2"]
    client = subprocess.Popen(
        [*command, "--time", "3600", "--quiet"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )

    # The client is the second of the two processes.
    eventually(lambda: own_workers(client.pid), "a worker")
    left = own_workers(client.pid)
    kill(client)
    assert client.stdout is not None
    client.stdout.close()
    eventually(lambda: not any(runs(pid) for pid in left), "the worker's end")

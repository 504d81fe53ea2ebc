"""One model in parts: a bound at every round, whoever is lost, and as good as in one piece."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import powersum as ps
from powersum.bounds.gdd import GDD
from powersum.bounds.huge import cut, method
from powersum.bounds.huge.crew import PartWorkers, crew_of
from powersum.bounds.huge.method import PartedGDD
from powersum.bounds.huge.part import ModelPart, SweepReport, load_part, sweep
from powersum.cluster.errors import ClusterError
from powersum.core import work_time as time
from powersum.core.arrays import FloatArray
from powersum.model.model import Model
from powersum.model.query import Query
from powersum.prepare.problem import Problem
from powersum.prepare.simplify import simplify
from tests.cluster.machines import (
    cluster_of,
    environment,
    eventually,
    kill,
    kill_one_of_ours,
    own_workers,
    runs,
)
from tests.oracle import exact_value
from tests.strategies import random_model, weighted_models


@pytest.fixture(scope="module")
def crew() -> Iterator[PartWorkers]:
    """One thread of this process: every part is kept in it."""
    with crew_of(ThreadPoolExecutor(1)) as crew:
        yield crew


def in_order(tau: FloatArray) -> Any:
    """Max variables last, by number otherwise."""
    return np.argsort(tau == 0, kind="stable")


@settings(max_examples=60, deadline=None)
@given(weighted_models())
def test_every_round_is_a_valid_bound(crew: PartWorkers, case: tuple[Model, FloatArray]) -> None:
    """On models as they are, with variables of one state, in no factor, and zeros that nobody has looked for."""
    model, weights = case
    exact = exact_value(model, weights)
    parted = PartedGDD(Problem.whole(model, weights, {}), in_order(weights), crew=crew, parts=3)
    for _ in range(4):
        assert parted.log_upper >= exact
        assert parted.bound() >= exact
        parted.step(math.inf)
    parted.close()


def random_grid(seed: int, side: int = 8) -> tuple[Problem, Any]:
    """A grid with sums and maxima mixed, simplified, and an order."""
    grid = ps.generate.grid(side, side, seed=seed)
    problem = simplify(grid.model, Query.of(grid.model, grid.query), {})
    return problem, in_order(problem.tau)


def test_after_equal_sweeps_nearly_as_tight_as_in_one_piece(crew: PartWorkers) -> None:
    problem, order = random_grid(1, side=40)
    whole, parted = GDD(problem, order), PartedGDD(problem, order, crew=crew, parts=2)
    for _ in range(30):
        whole.step(math.inf)
        parted.step(math.inf)
    assert parted.sizes()["seam_variables"] < 100
    assert parted.log_upper <= whole.log_upper + 0.005 * abs(whole.log_upper)
    agreeing = parted.decode() == whole.decode()
    assert (parted.decode()[problem.tau > 0] == -1).all()
    assert agreeing.mean() > 0.9
    parted.close()


def test_shifts_cancel_and_weights_are_shared_out(crew: PartWorkers) -> None:
    problem, order = random_grid(2)
    parted = PartedGDD(problem, order, crew=crew, parts=4)
    ledger = parted._ledger
    # There is nothing to exchange before the first sweep.
    parted.step(math.inf)
    for _ in range(5):
        parted.step(math.inf)
        tau = np.bincount(ledger._axis_variable, ledger.weights)
        np.testing.assert_allclose(tau, problem.tau[parted._at_seam], atol=1e-12)
        totals = np.zeros((len(parted._at_seam), 2))
        np.add.at(totals, (ledger._entry_variable, ledger._entry_state), ledger.shifts)
        np.testing.assert_allclose(totals, 0.0, atol=1e-12)
        assert np.abs(ledger.shifts).max() > 0.01
        # Whatever is missing is counted.
        assert 0.0 < ledger.log_deficit() < 1e-9
    ledger.shifts[:] -= 0.5
    assert ledger.log_deficit() == pytest.approx(0.5 * len(ledger._axis_variable), rel=1e-6)
    parted.close()


@pytest.mark.parametrize("round_lost", [1, 3])
def test_a_part_that_starts_again_stands_where_the_ledger_says(
    crew: PartWorkers, round_lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts forget all that came after their checkpoint, two rounds ago; what they report is still of one point."""
    monkeypatch.setattr(method, "CHECKPOINT_SECONDS", 0.0)
    rng = np.random.default_rng(round_lost)
    model = random_model(rng, n_variables=10, n_factors=16, max_states=3, max_scope=3)
    tau = np.where(rng.random(10) < 0.4, 0.0, 1.0)
    exact = exact_value(model, tau)
    parted = PartedGDD(Problem.whole(model, tau, {}), in_order(tau), crew=crew, parts=3)
    parted.step(math.inf)
    monkeypatch.setattr(method, "CHECKPOINT_SECONDS", math.inf)
    for _ in range(round_lost):
        parted.step(math.inf)
    from powersum.cluster.store import forget

    for number in (0, 2):
        forget(f"{parted._plan.run}/{number}")
    seam, reports = [parted._ledger.of_part(p) for p in range(3)], parted._ask(sweep, 0, False)
    for number in range(3):
        part = ModelPart(parted._plan, number)
        part.apply(seam[number])
        assert isinstance(reports[number], SweepReport)
        if number != 1:
            part.bound()
            assert part.report().value == pytest.approx(reports[number].value, abs=1e-9)
    for _ in range(3):
        parted.step(math.inf)
        assert parted.log_upper >= exact
        assert parted.bound() >= exact
    parted.close()


def test_a_part_is_read_alone(tmp_path: Path, crew: PartWorkers) -> None:
    """The factors of all parts together are those of the model, each once."""
    problem, order = random_grid(3)
    parted = PartedGDD(problem, order, crew=crew, parts=3, folder=str(tmp_path))
    assert parted._folder.parent == tmp_path
    found = []
    for number in range(3):
        model, variables, constants, log_error = load_part(parted._plan, number)
        assert not len(constants)
        # Simplified before it was cut: there is nothing to add up.
        assert log_error == 0.0
        found += [(tuple(variables[list(f.scope)].tolist()), f.log_table.tolist()) for f in model.factors()]
    whole = [(tuple(f.scope), f.log_table.tolist()) for f in problem.model.factors()]
    assert sorted(found) == sorted(whole)
    parted.close()
    assert not list(tmp_path.iterdir())


def test_factors_inside_others_are_added_to_them(tmp_path: Path, crew: PartWorkers) -> None:
    """A mapped file is cut as it is; its parts are simplified where they lie, and bound as well as one process does."""
    grid = ps.generate.grid(30, 30, seed=4)
    model = grid.model
    n_pairs = int((np.diff(model.scope_starts) == 2).sum())
    assert model.n_factors == n_pairs + 900
    query = Query.of(model, grid.query)
    order = in_order(query.weights)
    parted = PartedGDD(Problem.whole(model, query.weights, {}), order, crew=crew, parts=3, folder=str(tmp_path))
    total, n_factors = 0.0, 0
    for number in range(3):
        part, _, _, log_error = load_part(parted._plan, number)
        n_factors += part.n_factors
        total += float(part.log_values[part.table_starts[:-1]].sum())
        assert 0.0 < log_error < 1e-9
    # A part may have a variable's own factor and no other of it.
    assert n_pairs <= n_factors < n_pairs + 10
    # All factors in their first states, whoever was added to whom.
    assert total == pytest.approx(float(model.log_values[model.table_starts[:-1]].sum()), rel=1e-12)
    problem = simplify(model, query, {})
    whole = GDD(problem, in_order(problem.tau))
    for _ in range(4):
        whole.step(math.inf)
        parted.step(math.inf)
        assert parted.log_upper <= (whole.log_upper + problem.log_constant) * 1.005
    parted.close()


def test_strips_where_no_partitioner_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ps.generate.grid(20, 20, seed=0).model
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    part = cut.cut_factors(400, model.scope_starts, model.scope_variables, 4, 0)
    sizes = np.bincount(part)
    assert len(sizes) == 4
    assert sizes.min() > 0.8 * sizes.mean()
    owner = np.repeat(part, np.diff(model.scope_starts))
    pairs = np.unique(model.scope_variables * 4 + owner)
    # No more than a few diagonals are shared.
    assert len(pairs) - 400 < 3 * 2 * 20


def test_a_killed_process_is_replaced_and_the_bound_stays_valid(tmp_path: Path) -> None:
    """Real processes; one is killed in the middle of the run, and the run goes on from the ledger."""
    grid = ps.generate.grid(4, 4, seed=5)
    weights = Query.of(grid.model, grid.query).weights
    exact = exact_value(grid.model, weights)
    path = tmp_path / "grid.psm"
    ps.write(grid.model, path)
    killed, seen, others = list[int](), list[float](), own_workers()

    def kill_one(snapshot: Any) -> None:
        seen.append(snapshot.log_upper)
        if snapshot.sweep == 3:
            killed.append(kill_one_of_ours(others))

    result = ps.bound(path, grid.query, method="gdd", workers=2, sweeps=8, callback=kill_one)
    assert killed
    assert result.sizes["parts"] == 2
    assert len(seen) == 9
    assert min(seen) >= exact
    assert result.log_upper >= exact
    assert set(result.assignment) == {str(v) for v in grid.query}


def test_a_killed_worker_of_a_cluster_is_replaced_from_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real scheduler and workers; one is killed in the middle of a sweep, and another one takes its part over."""
    # Every round is saved, so that there is a checkpoint to begin with.
    monkeypatch.setattr(method, "CHECKPOINT_SECONDS", -1.0)
    grid = ps.generate.grid(4, 4, seed=6)
    exact = exact_value(grid.model, Query.of(grid.model, grid.query).weights)
    path = tmp_path / "grid.psm"
    ps.write(grid.model, path)
    seen, killers = list[float](), list[threading.Thread]()
    with cluster_of(tmp_path, 2) as (here, client):

        def kill_one(snapshot: Any) -> None:
            seen.append(snapshot.log_upper)
            if snapshot.sweep == 3:
                # From aside: the next sweep begins meanwhile.
                killers.append(threading.Thread(target=kill, args=(here.workers[0],)))
                killers[0].start()

        result = ps.bound(path, grid.query, method="gdd", workers=client, sweeps=10, callback=kill_one)
        killers[0].join()
        assert here.workers[0].poll() is not None
    assert result.sizes["parts"] == 2
    assert len(seen) == 11
    assert min(seen) >= exact
    assert seen == sorted(seen, reverse=True)
    assert result.log_upper >= exact


def test_a_killed_scheduler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that were told before hold; the files of the run are gone."""
    grid = ps.generate.grid(4, 4, seed=7)
    exact = exact_value(grid.model, Query.of(grid.model, grid.query).weights)
    path, folder = tmp_path / "grid.psm", tmp_path / "run"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    ps.write(grid.model, path)
    seen: list[float] = []
    with cluster_of(tmp_path, 2) as (here, client):

        def killing(snapshot: Any) -> None:
            seen.append(snapshot.log_upper)
            if snapshot.sweep == 2:
                kill(here.scheduler)

        with pytest.raises(ClusterError, match="the cluster is gone") as caught:
            ps.bound(path, grid.query, method="gdd", workers=client, sweeps=1000, callback=killing)
    assert "\n" not in str(caught.value)
    assert len(seen) == 3
    assert min(seen) >= exact
    assert not list(folder.iterdir())


def test_a_killed_client_leaves_no_process_and_its_files_go_with_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ps.generate.grid(20, 20, seed=1)
    path, folder = tmp_path / "grid.psm", tmp_path / "run"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    ps.write(grid.model, path)
    program = tmp_path / "client.py"
    program.write_text(
        "import sys, powersum as ps\n"
        "from tests.cluster.machines import own_workers\n"
        "def told(snapshot):\n"
        "    if snapshot.sweep == 2: print(*own_workers(), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    ps.bound(sys.argv[1], [0], method='gdd', workers=2, sweeps=10**9, change=0.0, callback=told)\n"
    )
    client = subprocess.Popen([sys.executable, str(program), str(path)], env=environment(), stdout=subprocess.PIPE)
    assert client.stdout is not None
    with client.stdout as said:
        workers = [int(number) for number in said.readline().split()]
    assert len(workers) == 2
    kill(client)
    eventually(lambda: not any(runs(worker) for worker in workers), "the workers' end")
    assert list(folder.iterdir())
    with ThreadPoolExecutor(2) as pool:
        ps.bound(path, [0], method="gdd", workers=pool, sweeps=1)
    assert not list(folder.iterdir())


def test_a_slow_worker_is_waited_for(tmp_path: Path) -> None:
    """It stands still for a while in the middle of the run; the bounds are those of a run without trouble."""
    grid = ps.generate.grid(6, 6, seed=8)
    path = tmp_path / "grid.psm"
    ps.write(grid.model, path)
    with ThreadPoolExecutor(2) as pool:
        alone = ps.bound(path, grid.query, method="gdd", workers=pool, sweeps=6)
    with cluster_of(tmp_path, 2) as (here, client):

        def stopping(snapshot: Any) -> None:
            if snapshot.sweep == 2:
                here.pause(here.workers[0], 0.5)

        result = ps.bound(path, grid.query, method="gdd", workers=client, sweeps=6, callback=stopping)
    assert [snapshot.log_upper for snapshot in result.history] == [snapshot.log_upper for snapshot in alone.history]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "tree"}, "workers take method gdd, not tree"),
        ({"method": "gdd", "certificate": True}, "certificate is not there for a bound in parts"),
        ({"method": "gdd", "ibound": 2}, "ibound is not there for a bound in parts"),
        ({"method": "gdd", "workers": "four"}, "workers is 'four'"),
    ],
)
def test_what_parts_cannot_do_is_said(options: dict[str, Any], message: str) -> None:
    model = ps.generate.grid(3, 3, seed=0).model
    with pytest.raises(ps.InputError, match=message):
        ps.bound(model, sweeps=1, **{"workers": 2, **options})


def test_mapped_models_read_back_as_they_were(tmp_path: Path) -> None:
    from powersum.model.mapped import mapped_file

    rng = np.random.default_rng(0)
    model = random_model(rng, n_variables=6, n_factors=8, zeros=0.2)
    path = tmp_path / "model.psm"
    ps.write(model, path)
    found = ps.read(path)
    assert found.digest == model.digest
    assert mapped_file(found) == str(path)
    assert mapped_file(model) is None
    whole = path.read_bytes()
    for broken in (b"", b"{}\n", whole[: len(whole) - 8], b"\xff" + whole):
        path.write_bytes(broken)
        with pytest.raises(ps.InputError, match="no whole file"):
            ps.read(path)


def test_no_thread_is_left(crew: PartWorkers) -> None:
    problem, order = random_grid(4, side=4)
    # The first time the crew's own thread begins. Threads of other tests may end at any moment.
    for _ in range(2):
        before = set(threading.enumerate())
        parted = PartedGDD(problem, order, crew=crew, parts=2)
        parted.step(time.monotonic())
        parted.close()
    assert set(threading.enumerate()) <= before

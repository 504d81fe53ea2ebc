"""The one door to workers: every kind of executor gives the same results, also when workers are killed."""

from __future__ import annotations

import concurrent.futures as cf
import contextvars
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from powersum.cluster.dask_workers import connected
from powersum.cluster.errors import ClusterError
from powersum.cluster.executor import Shared, Workers, WorkersLike, check_workers, workers_of
from powersum.core.errors import InputError
from tests.cluster.jobs import add, die_once, endless, number_of_process, slow
from tests.cluster.machines import SECONDS, Machines, cluster_of, environment, eventually, kill, machines, runs


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("machines"), 2) as here:
        yield here


def run(workers: Workers, function: Any, *, shared: Any, tasks: int) -> dict[int, Any]:
    value = workers.share(shared)
    for number in range(tasks):
        workers.submit(number, function, value, number)
    return taken(workers)


def handed_in_and_taken(workers: Workers, shared: Shared) -> None:
    workers.submit(0, add, shared, 1)
    taken(workers)


def taken(workers: Workers) -> dict[int, Any]:
    found: dict[int, Any] = {}
    while workers.pending:
        for tag, result in workers.finished():
            assert tag not in found
            found[tag] = result
    return found


EXPECTED = {number: 10 + number for number in range(20)}


@pytest.mark.parametrize("executor", [None, 2])
def test_results_of_every_task(executor: WorkersLike) -> None:
    with workers_of(executor) as workers:
        assert run(workers, add, shared=10, tasks=20) == EXPECTED


def test_somebody_elses_executor_stays_open() -> None:
    with cf.ThreadPoolExecutor(3) as pool:
        with workers_of(pool) as workers:
            assert workers.size == 3
            assert run(workers, add, shared=10, tasks=20) == EXPECTED
        assert pool.submit(add, 1, 2).result() == 3


def test_dask(cluster: Machines) -> None:
    with connected(cluster.address) as client:
        client.wait_for_workers(2, timeout=SECONDS)
        for _ in range(2):
            with workers_of(client) as workers:
                assert workers.size == 2
                workers.once_a_node(add, workers.share(1), 1)
                assert run(workers, add, shared=10, tasks=20) == EXPECTED


def test_an_exception_of_a_task_is_raised() -> None:
    with workers_of(2) as workers:
        workers.submit("wrong", add, workers.share("a word"), 1)
        with pytest.raises(TypeError):
            taken(workers)


def test_a_killed_process_costs_only_what_it_was_at(tmp_path: Path) -> None:
    with workers_of(2) as workers:
        found = run(workers, die_once, shared=str(tmp_path / "died"), tasks=20)
    assert found == {number: number for number in range(20)}
    assert (tmp_path / "died").exists()


def test_work_that_kills_every_process_is_given_up() -> None:
    with workers_of(1) as workers, pytest.raises(ClusterError, match=r"died 4 times at the same work"):
        run(workers, die_once, shared="", tasks=1)


def test_processes_end_with_whoever_started_them(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(
        "from powersum.cluster.executor import workers_of\n"
        "from tests.cluster.jobs import number_of_process, slow\n"
        "if __name__ == '__main__':\n"
        "    with workers_of(1) as workers:\n"
        "        shared = workers.share(0)\n"
        "        workers.submit(0, number_of_process, shared)\n"
        "        while not (found := workers.finished()): pass\n"
        "        print(found[0][1], flush=True)\n"
        "        while True:\n"
        "            workers.submit(0, slow, shared, 0)\n"
        "            workers.finished()\n"
    )
    client = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment())
    assert client.stdout is not None
    with client.stdout as said:
        worker = int(said.readline())
    assert runs(worker)
    kill(client)
    eventually(lambda: not runs(worker), "the worker's end")


def test_processes_end_with_the_block() -> None:
    with workers_of(1) as workers:
        shared = workers.share(0)
        workers.submit(0, number_of_process, shared)
        while not (found := workers.finished()):
            pass
        workers.submit(1, slow, shared, 0)
    worker = found[0][1]
    eventually(lambda: not runs(worker), "the worker's end")


def test_a_killed_worker_of_dask_costs_only_what_it_was_at(tmp_path: Path) -> None:
    with cluster_of(tmp_path, 2) as (here, client), workers_of(client) as workers:
        shared = workers.share(10)
        for number in range(20):
            workers.submit(number, slow, shared, number)
        found = dict(workers.finished(SECONDS))
        kill(here.workers[0])
        found |= taken(workers)
    assert found == EXPECTED


def test_a_slow_worker_is_waited_for(tmp_path: Path) -> None:
    with cluster_of(tmp_path, 2) as (here, client), workers_of(client) as workers:
        shared = workers.share(10)
        here.pause(here.workers[0], 1.0)
        for number in range(20):
            workers.submit(number, slow, shared, number)
        found = taken(workers)
    assert found == EXPECTED


def test_a_killed_scheduler_is_one_line(tmp_path: Path) -> None:
    with machines(tmp_path, 1) as here, connected(here.address) as client, workers_of(client) as workers:
        shared = workers.share(10)
        workers.submit(0, add, shared, 0)
        assert workers.finished(SECONDS) == [(0, 10)]
        # However long this process looks elsewhere, something is left to be done.
        for number in (1, 2):
            workers.submit(number, endless, shared)
        kill(here.scheduler)
        with pytest.raises(ClusterError, match="the cluster is gone") as caught:
            taken(workers)
        assert "\n" not in str(caught.value)


def test_a_worker_without_the_package_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text("import sys\nsys.modules['powersum'] = None\n")
    with machines(tmp_path, 0) as here, connected(here.address) as client:
        here.worker("--preload", str(tmp_path / "bare.py"))
        client.wait_for_workers(1, timeout=SECONDS)
        has_none = r"the worker at tcp://127.0.0.1:\d+ has no powersum"
        with pytest.raises(ClusterError, match=has_none) as caught, workers_of(client):
            pass
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seen", [("connecting", "closed"), ("closed",)])
def test_what_is_handed_in_after_the_scheduler_is_gone_is_not_waited_for(tmp_path: Path, seen: tuple[str, ...]) -> None:
    """Workers are told at the end of a run to forget it, also when the scheduler is the reason for the end."""
    with machines(tmp_path, 1) as here, connected(here.address) as client, workers_of(client) as workers:
        shared = workers.share(1)
        # So long it would wait for the scheduler to come back.
        client._timeout = 1
        kill(here.scheduler)
        eventually(lambda: client.status in seen, "the client notices")
        with pytest.raises(ClusterError, match="the cluster is gone"):
            handed_in_and_taken(workers, shared)
        assert not workers.pending


def test_no_scheduler_is_one_line() -> None:
    with pytest.raises(ClusterError, match=r"no scheduler at nonsense") as caught, connected("nonsense://here"):
        pass
    assert "\n" not in str(caught.value)


def test_a_goodbye_that_takes_too_long_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def close(self, timeout: float) -> None:
            raise TimeoutError(f"timed out after {timeout} s")

    monkeypatch.setattr("distributed.Client", Slow)
    with connected("tcp://127.0.0.1:1") as client:
        pass
    assert isinstance(client, Slow)


def test_only_what_dask_says_of_this_connection_is_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = logging.getLogger("distributed.core")
    monkeypatch.setattr(said, "propagate", True)
    monkeypatch.setattr(logging.getLogger("distributed"), "propagate", True)
    before = said.level, list(said.filters)

    class Telling:
        def __init__(self, *_: object, **__: object) -> None:
            said.error("ours, at its begin")

        def close(self, timeout: float) -> None:
            said.error("ours, at its end")

    monkeypatch.setattr("distributed.Client", Telling)
    with connected("tcp://127.0.0.1:1"):
        contextvars.Context().run(said.error, "of another client")
        with connected("tcp://127.0.0.1:2"):
            pass
        said.error("ours, with another one over")
    said.error("afterwards")
    assert [record.getMessage() for record in caplog.records] == ["of another client", "afterwards"]
    assert (said.level, list(said.filters)) == before


def test_a_scheduler_that_ends_is_silent(tmp_path: Path) -> None:
    """Dask logs in its own thread that the connection is lost."""
    script = """
import sys
from tests.cluster.machines import eventually, kill, machines
from powersum.cluster.dask_workers import connected
from pathlib import Path
with machines(Path(sys.argv[1]), 0) as here, connected(here.address) as client:
    client._timeout = 1
    kill(here.scheduler)
    eventually(lambda: client.status in ("connecting", "closed"), "the client notices")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stderr == ""


@pytest.mark.parametrize("executor", [0, -1, True, "two", 1.5, object()])
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    with pytest.raises(InputError, match="workers is"):
        check_workers(executor)


def test_an_executor_that_was_shut_down_is_one_line() -> None:
    pool = cf.ThreadPoolExecutor(1)
    pool.shutdown()
    with workers_of(pool) as workers, pytest.raises(ClusterError, match="the executor's workers are gone"):
        workers.submit(0, add, workers.share(1), 1)

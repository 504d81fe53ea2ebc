"""The runs of :mod:`benchmarks.frozen`, and the process that answers them: it reads names and writes lines of JSON.

Every run is counted in work, so that no answer depends on how long anything takes. Random questions are those of the
soak, by seed and road; the others are about the instances of ``POWERSUM_DATA``. The process may stand on another
version of the package: it uses the public calls, and that version's own list of roads.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.instances import DATA, model_file

SEED = 32_000_000_000
"""Of the first random question of each entry; the soak draws others unless it is asked for this seed."""

DRAWN = {
    "solve": 80,
    "solver": 10,
    "bound": 100,
    "best": 40,
    "marginals": 30,
    "engine": 15,
    "gradient": 20,
    "resume": 15,
}
"""Random questions of each entry."""

QUICK_SHARE = 4
"""Of so many random questions one belongs to the small set."""

QUICK_ROWS = (
    ("pedigree/pedigree1.Q0.5.I3", ("solve", "auto", "gdd", "best")),
    ("grid/50-12-5.Q0.5.I1", ("solve", "tree", "best")),
    ("promedas/or_chain_10.fg.Q0.5.I1", ("solve", "auto")),
    ("segmentation/10_14_s.binary.Q0.5.I2", ("solve", "gdd")),
    ("spot5/29.Q0.5.I0", ("solve",)),
    ("influence/mdp0-2_2_2_3.mmap", ("solve", "auto")),
    ("planning/sg_p01_2", ("solve",)),
    ("bayes/alarm", ("solve", "marginals")),
    ("uai2014-mar/Promedus_14", ("marginals",)),
)
ROWS = (
    ("pedigree/pedigree7.Q0.5.I1", ("solve", "auto", "tree", "gdd", "mbe", "wmb", "mas", "best")),
    ("pedigree/pedigree30.Q0.5.I2", ("solve", "auto", "best")),
    ("pedigree/pedigree20", ("solve", "tree")),
    ("grid/50-14-5.Q0.5.I1", ("solve", "auto", "tree", "gdd", "mbe", "wmb", "mas")),
    ("grid/75-17-5.Q0.5.I4", ("solve", "auto", "best")),
    ("grid/90-24-5.Q0.5.I2", ("solve", "auto")),
    ("promedas/or_chain_111.fg.Q0.5.I2", ("solve", "auto", "gdd", "best")),
    ("promedas/or_chain_60.fg.Q0.5.I3", ("solve", "tree")),
    ("segmentation/3_16_s.binary.Q0.5.I0", ("solve", "wmb")),
    ("spot5/54.Q0.5.I1", ("solve", "auto", "best")),
    ("planning/bw_p24_3", ("solve", "tree", "best")),
    ("planning/comm_p01_5", ("solve", "auto")),
    ("influence/pomdp1-4_2_2_2_3.mmap", ("solve", "auto", "best")),
    ("influence/ID_from_BN_78_w18d3.mmap", ("solve", "gdd")),
    ("uai2014-mmap/Grids_18", ("solve", "auto")),
    ("uai2014-mmap/Promedas_24", ("solve", "tree")),
    ("uai2014-mmap/wcsp_13", ("solve", "best")),
    ("uai2014-pr/2bitcomp_5.cnf", ("solve", "gdd")),
    ("uai2014-pr/Alchemy_11", ("solve", "auto")),
    ("bayes/hailfinder", ("solve", "marginals")),
    ("uai2014-mar/Grids_16", ("marginals",)),
)
"""Instances, and what is asked about each: an entry, or a method of ``bound``. The first few are the small set."""

LITTLE, QUICK_WORK, WORK = 0.3, 1.0, 3.0
"""Work of a random question, and of an instance in the small set and in the other one."""

MEMORY = 2e9

UNCOUNTED = ("mbe", "wmb", "mas")
"""Methods that take a number of sweeps and no work."""

SWEEPS = 5

BIG_PROOF = 20e6
"""Bytes of arrays beyond which a certificate is digested and not checked, for that takes longer than the run."""

Record = dict[str, Any]


def names(*, quick: bool) -> list[str]:
    """The names of all runs; those of instances that are not here are left out."""
    step = QUICK_SHARE if quick else 1
    drawn = [f"{entry}-{SEED + number}" for entry, count in DRAWN.items() for number in range(0, count, step)]
    rows = QUICK_ROWS if quick else (*QUICK_ROWS, *ROWS)
    here = [(row, asks) for row, asks in rows if model_file(*_instance(row)).is_file()]
    return drawn + [f"{row} {ask}" for row, asks in here for ask in asks]


def _instance(row: str) -> tuple[str, str]:
    """Folder and name of the model that a row is about."""
    family, _, name = row.partition("/")
    return family, name.split(".Q")[0]


def answered(name: str) -> Record:
    """What a run answers, by plain words and numbers; whatever it raises is its answer, too."""
    from powersum.core.work_time import Meter, counted_by

    meter = Meter()
    try:
        # Not every entry takes ``work``: their limits on time are then on what this meter counts.
        with counted_by(meter):
            record = _of_instance(name) if "/" in name else _of_case(name)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    # As JSON has it: lists are lists, and keys are text.
    plain: Record = json.loads(json.dumps({**record, "work": meter.seconds}))
    return plain


def _of_case(name: str) -> Record:
    """A random question, on its road, with nothing from outside."""
    from soak.cases import Trouble
    from soak.draw import draw
    from soak.roads import road, schedule

    entry, _, seed = name.partition("-")
    case = draw(int(seed), entry)
    calm = Trouble()
    asked = {"case": hashlib.sha256(repr(case).encode()).hexdigest()[:16], "road": case.road}
    with road(case.road, calm):
        return asked | _ENTRIES[entry](case, schedule(case.road, calm))


def _kept(case: Any, *dropped: str) -> dict[str, Any]:
    """The options of a case but its limits and its executor, and others."""
    apart = ("time_limit", "work", "executor", "workers", *dropped)
    return {name: value for name, value in case.options.items() if name not in apart}


def _solve(case: Any, schedule: Any) -> Record:
    from soak.asking import asked

    import powersum as ps

    model, question = case.model(), case.questions[0]
    options = {"memory": MEMORY, **_kept(case)}
    result = ps.solve(model, **asked(case, question), **options, work=LITTLE, schedule=schedule)
    return _of_result(result, model, question)


def _solver(case: Any, schedule: Any) -> Record:
    from soak.asking import asked

    import powersum as ps

    model, question = case.model(), case.questions[0]
    options = {"memory": MEMORY, **_kept(case)}
    solver = ps.Solver(model, **asked(case, question), **options, work=LITTLE, schedule=schedule)
    shown = [_of_snapshot(snapshot) for snapshot in solver]
    return {"shown": shown, **_of_result(solver.result(), model, question)}


def _bound(case: Any, schedule: Any) -> Record:
    from soak.asking import asked

    import powersum as ps

    del schedule
    model, question = case.model(), case.questions[0]
    options = _kept(case)
    if options["method"] in ("auto", "tree", "gdd") and "sweeps" not in options:
        options["work"] = LITTLE
    else:
        options.setdefault("sweeps", SWEEPS)
    result = ps.bound(model, **asked(case, question), order=question.order, **options)
    return _of_result(result, model, question)


def _marginals(case: Any, schedule: Any) -> Record:
    import powersum as ps

    del schedule
    found = ps.marginals(case.model(), evidence=case.evidence(case.questions[0]), **_kept(case), time_limit=LITTLE)
    return _of_marginals(found)


def _engine(case: Any, schedule: Any) -> Record:
    from soak.asking import asked

    import powersum as ps

    del schedule
    model = case.model()
    engine = ps.Engine(model, **_kept(case), memory=MEMORY, time_limit=LITTLE)
    record: Record = {}
    for number, question in enumerate(case.questions):
        evidence = case.evidence(question)
        record[f"solve {number}"] = _of_result(engine.solve(**asked(case, question)), model, question)
        record[f"sum {number}"] = _of_result(engine.log_z(evidence=evidence), model, question)
        try:
            record[f"marginals {number}"] = _of_marginals(engine.marginals(evidence=evidence))
        except ps.InputError as error:
            record[f"marginals {number}"] = str(error)
    return record


def _gradient(case: Any, schedule: Any) -> Record:
    from soak.asking import asked

    import powersum as ps

    del schedule
    model, question = case.model(), case.questions[0]
    options = _kept(case, "calls")
    try:
        tree = ps.BoundFunction(model, **asked(case, question), **options)
    except ps.InputError as error:
        return {"refused": str(error)}
    calls = [tree() for _ in range(case.options["calls"])]
    return {
        "calls": [{"value": _number(value), "slope": slope.tolist()} for value, slope in calls],
        "exact": tree.exact,
    }


def _resume(case: Any, schedule: Any) -> Record:
    import tempfile

    from soak.asking import asked

    import powersum as ps

    model, question = case.model(), case.questions[0]
    options = {"memory": MEMORY, **asked(case, question), **_kept(case), "work": LITTLE, "schedule": schedule}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.zip")
        first = ps.solve(model, **options, checkpoint=path, every=0.0)
        record = {"first": _of_result(first, model, question)}
        if path.exists():
            record["again"] = _of_result(ps.solve(model, **options, resume=path), model, question)
    return record


_ENTRIES: Mapping[str, Callable[[Any, Any], Record]] = {
    "solve": _solve,
    "solver": _solver,
    "bound": _bound,
    "best": _solve,
    "marginals": _marginals,
    "engine": _engine,
    "gradient": _gradient,
    "resume": _resume,
}


def _of_instance(name: str) -> Record:
    """A question about an instance."""
    from soak.cases import Question

    import powersum as ps
    from powersum.formats import read, read_evidence, read_query

    row, _, ask = name.partition(" ")
    family, model_name = _instance(row)
    model = read(model_file(family, model_name))
    seen, query = DATA / family / f"{model_name}.uai.evid", _query_file(row)
    evidence = {int(v): int(state) for v, state in read_evidence(seen, model).items()} if seen.is_file() else {}
    maximize = [int(v) for v in read_query(query, model)] if query.is_file() else None
    weights = [1.0] * model.n_variables
    for v in maximize or ():
        weights[v] = 0.0
    question = Question(tuple(weights), evidence)
    work = QUICK_WORK if any(row == quick for quick, _ in QUICK_ROWS) else WORK
    if ask == "marginals":
        return _of_marginals(ps.marginals(model, evidence=evidence, time_limit=work))
    if ask in ("solve", "best"):
        result = ps.solve(
            model, maximize, evidence=evidence, k=3 if ask == "best" else 1, work=work, memory=MEMORY, certificate=True
        )
    elif ask in UNCOUNTED:
        result = ps.bound(model, maximize, evidence=evidence, method=ask, sweeps=SWEEPS)
    else:
        result = ps.bound(model, maximize, evidence=evidence, method=ask, work=work, certificate=True)
    return _of_result(result, model, question)


def _query_file(row: str) -> Path:
    family, _, name = row.partition("/")
    return DATA / family / (f"{name}.uai.query" if family.startswith("uai2014") else f"{name}.map")


def _of_result(result: Any, model: Any, question: Any) -> Record:
    """All of a result but the version that it names, and what the checker says of its certificate."""
    record: Record = {key: value for key, value in result.to_dict().items() if key not in ("version", "best")}
    record["best"] = [
        {key: one[key] for key in ("log_upper", "log_lower", "assignment", "status", "probability")}
        for one in (place.to_dict() for place in result.best)
    ]
    if result.certificate is not None:
        record["certificate"] = _of_certificate(result.certificate, model, question)
    return record


def _of_certificate(certificate: Any, model: Any, question: Any) -> Record:
    digest = hashlib.sha256(json.dumps(dict(certificate.head), sort_keys=True, default=str).encode())
    for name, array in sorted(certificate.arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    record = {"digest": digest.hexdigest(), "kinds": " ".join(step["kind"] for step in certificate.head["steps"])}
    if certificate.n_bytes <= BIG_PROOF:
        from soak.certificates import verified

        try:
            record["proven"] = " to ".join(map(repr, verified(model, question, certificate)))
        except Exception as error:
            record["proven"] = f"REFUSED: {type(error).__name__}: {error}"
    return record


def _of_marginals(found: Any) -> Record:
    columns = {"beliefs": found.beliefs, "log_lower": found.log_lower, "log_upper": found.log_upper}
    return {
        "exact": found.exact,
        **{name: [[_number(x) for x in row.tolist()] for row in rows] for name, rows in columns.items()},
    }


def _of_snapshot(snapshot: Any) -> Record:
    return {name: _number(getattr(snapshot, name)) for name in ("seconds", "sweep", "log_upper", "log_lower")}


def _number(value: float) -> float | str:
    """A number as JSON may have it."""
    return value if math.isfinite(value) else repr(float(value))


def about() -> Record:
    """On what the runs of this process stand: digits may be others with another compiler, library or processor."""
    import llvmlite.binding
    import numba
    import numpy

    return {
        "python": sys.version.split()[0],
        "numba": numba.__version__,
        "numpy": numpy.__version__,
        "processor": llvmlite.binding.get_host_cpu_name(),
    }


@contextmanager
def _lines_only() -> Iterator[Any]:
    """The place where answers go; whatever else is printed goes to the other stream."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        yield out


def main() -> None:
    """Answer the runs that are named on standard input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder that the package must be imported from")
    parser.add_argument("roads", type=Path, help="the list of roads that goes with it")
    arguments = parser.parse_args()
    import powersum

    if not Path(powersum.__file__).is_relative_to(arguments.source):
        sys.exit(f"{powersum.__file__} is not of {arguments.source}")
    spec = importlib.util.spec_from_file_location("soak.roads", arguments.roads)
    assert spec is not None
    assert spec.loader is not None
    roads = importlib.util.module_from_spec(spec)
    sys.modules["soak.roads"] = roads
    spec.loader.exec_module(roads)
    with _lines_only() as out:
        print(json.dumps(about()), file=out, flush=True)
        for name in sys.stdin.read().splitlines():
            begun = time.perf_counter()
            answer = answered(name)
            line = {"name": name, "seconds": round(time.perf_counter() - begun, 3), "answer": answer}
            print(json.dumps(line), file=out, flush=True)


if __name__ == "__main__":
    main()

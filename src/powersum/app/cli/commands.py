"""The commands by name: where each is to be found, a line on it, and examples for the end of its help.

Nothing here imports a command, so that the list of all is there at once, and one is run without loading the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Command(NamedTuple):
    """A command that is not loaded: ``name`` in ``powersum.app.cli.{module}`` is its function or its Typer."""

    module: str
    name: str
    summary: str
    examples: tuple[str, ...] = ()


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "bound": Command(
            "bound",
            "bound_command",
            "Bound a value from above: marginal MAP, log Z or MAP.",
            (
                "powersum bound model.uai --query model.uai.query --sweeps 50 --plot bound.png",
                "powersum bound model.uai --max 0,3,7 --evidence 1=0,4=1 --time 10 --json -",
            ),
        ),
        "solve": Command(
            "solve",
            "solve_command",
            "Find the best states, their value, and a bound on all others.",
            (
                "powersum solve clinic.bif --max cancer,asthma --evidence cough=yes --report answer.html",
                "powersum solve clinic.bif --max cancer --likelihood xray=clear:0.2,shadow:0.6",
                "powersum solve model.uai --max all --evid model.uai.evid --uai model.uai.MAP",
            ),
        ),
        "marginals": Command(
            "marginals",
            "marginals_command",
            "Print how probable each state of each variable is.",
            (
                "powersum marginals clinic.bif --evidence cough=yes",
                "powersum marginals model.uai --of 3,7 --evid model.uai.evid --time 60",
                "powersum marginals clinic.bif --joint cancer,asthma --json -",
            ),
        ),
        "ask": Command(
            "ask",
            "ask_command",
            "Print which variable to observe next.",
            ("powersum ask clinic.bif --about cancer --among xray,smoker --evidence cough=yes",),
        ),
        "decide": Command(
            "decide",
            "decide_command",
            "Find a policy of an influence diagram, and bound all policies.",
            (
                "powersum decide wildcatter.uai --json policy.json",
                "powersum decide pomdp.uai --evidence 0=1,3=0 --time 20 --voi",
            ),
        ),
        "batch": Command(
            "batch",
            "batch_command",
            "Answer the same question for every case of a table.",
            (
                "powersum batch clinic.bif cases.csv --max cancer -o answers.csv --workers 4",
                "powersum batch clinic.bif cases.jsonl --max cancer -o answers.jsonl"
                " --workers tcp://head:8786 --resume",
            ),
        ),
        "explore": Command(
            "explore",
            "explore_command",
            "Open a page to click on what is observed and what is asked.",
            (
                "powersum explore clinic.bif",
                "powersum explore clinic.bif --max cancer --evidence cough=yes --port 8000 --no-browser",
            ),
        ),
        "uai-solver": Command(
            "uai_solver",
            "uai_solver_command",
            "Solve as the competitions call it.",
            (
                "INF_TIME=20 powersum uai-solver model.uai model.uai.evid model.uai.query MMAP",
                "INF_TIME=60 INF_MEMORY=8 powersum uai-solver model.uai model.uai.evid '' PR",
            ),
        ),
        "compare": Command(
            "compare",
            "compare_command",
            "Run several methods side by side on one question.",
            (
                "powersum compare model.uai --query model.uai.query --methods gdd,wmb:0.035,mbe"
                " --plot out.png --csv out.csv",
                "powersum compare model.uai --max all --methods gdd,tree:1,tree:6 --time 5",
            ),
        ),
        "info": Command(
            "info",
            "info_command",
            "Show a model's size, and what a question about it would take.",
            ("powersum info model.uai", "powersum info model.uai --query model.uai.query --json -"),
        ),
        "reproduce": Command(
            "reproduce",
            "reproduce_command",
            "Measure and draw every figure of the paper.",
            ("powersum reproduce --out figures", "powersum reproduce 2,3 --data shared/data --out figures"),
        ),
        "convert": Command(
            "convert",
            "convert_command",
            "Write a model in another format.",
            ("powersum convert grid.uai.gz grid.psm", "powersum convert clinic.bif clinic.uai"),
        ),
        "cache": Command(
            "cache",
            "cache_command",
            "Show, or remove, the compiled code that is kept between runs.",
            ("powersum cache", "powersum cache --clear"),
        ),
        "warmup": Command(
            "warmup",
            "warmup_command",
            "Compile everything beforehand, so that no later run has to.",
            ("powersum warmup", "powersum warmup --workers 8 --quiet"),
        ),
        # It has commands of its own, with examples of their own.
        "generate": Command("generate", "generate_app", "Write a realistic instance of any size, with a query."),
    }
)

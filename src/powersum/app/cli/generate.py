"""``powersum generate``: one table of generators, whose options and defaults are those of their functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from powersum import generate
from powersum.app.cli.files import check_outputs
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.help import examples
from powersum.generate.detections import detection
from powersum.generate.diagnostic import diagnosis
from powersum.generate.diagrams import pomdp, wildcatter
from powersum.generate.formulas import formula
from powersum.generate.grids import grid
from powersum.generate.pedigrees import pedigree
from powersum.generate.plans import plan
from powersum.generate.random_factors import random
from powersum.model.diagram import Diagram

generate_app = typer.Typer(
    help="Write a realistic instance of any size, with a query.",
    epilog=examples(
        "powersum generate grid --rows 100 --columns 100 -o grid.uai",
        "powersum generate pedigree --people 60 --loci 5 -o family.uai",
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The model (.uai, .uai.gz); the query goes beside it.")
]


class Generator(NamedTuple):
    """What the help of a generator says."""

    make: Callable[..., Any]
    summary: str
    examples: tuple[str, ...]
    options: Mapping[str, str] = MappingProxyType({})


SHARED = {"share": "Share of the variables in the query.", "seed": "The same seed gives the same instance."}
METAVARS = {int: "N", float: "X", str: "KIND", int | None: "N"}
NEEDED = {"rows": 10, "columns": 10}
"""Defaults of arguments that Python asks for."""

GENERATORS = {
    "grid": Generator(
        grid,
        "A grid: Ising- or Potts-like, or a Bayesian network with deterministic tables.",
        (
            "--rows 12 --columns 12 --kind bayes --deterministic 0.5 -o grid.uai",
            "--rows 1000 --columns 1000 --kind attractive -o large.uai.gz",
        ),
        {
            "rows": "Rows.",
            "columns": "Columns.",
            "states": "States of each variable.",
            "kind": "mixed, attractive, or bayes (with zeros).",
            "strength": "Largest coupling of two neighbours.",
            "field": "Largest weight of a single state.",
            "deterministic": "bayes: share of 0/1 tables.",
        },
    ),
    "pedigree": Generator(
        pedigree,
        "A family for genetic linkage analysis, full of hard zeros.",
        (
            "--people 30 --loci 4 -o family.uai",
            "--people 200 --loci 10 --alleles 7 --typed 0.3 --seed 1 -o clan.uai",
        ),
        {
            "people": "People in the family.",
            "loci": "Loci on the chromosome.",
            "founders": "People without parents; a third if left out.",
            "alleles": "Largest number of alleles of a marker.",
            "typed": "Share of genotyped people.",
            "recombination": "Chance between neighbouring loci.",
        },
    ),
    "diagnosis": Generator(
        diagnosis,
        "A network of risks, diseases and findings with graded noisy-or tables.",
        ("--variables 203 --states 7 -o clinic.uai", "--variables 359 --states 6 --observed 0 -o network.uai"),
        {
            "variables": "Risks, diseases and findings together.",
            "states": "Largest number of states.",
            "parents": "Largest number of causes.",
            "observed": "Share of the findings that are known.",
        },
    ),
    "detection": Generator(
        detection,
        "A part-based detection model: a table for every pair of parts.",
        ("-o parts.uai", "--parts 60 --states 21 --seed 1 -o parts.uai.gz"),
        {
            "parts": "Parts of the object.",
            "states": "Candidate places of each part.",
            "strength": "Log entries are between -4 and 4 times this.",
        },
    ),
    "plan": Generator(
        plan,
        "A plan without observations: actions that bring all robots to their goals from uncertain starts.",
        ("-o robots.uai", "--rooms 20 --steps 12 --robots 5 --fails 0 -o sure.uai"),
        {
            "rooms": "Rooms.",
            "steps": "Actions one after the other.",
            "robots": "Robots that each action moves.",
            "actions": "Actions to choose from.",
            "fails": "Chance that a robot does not move.",
        },
    ),
    "formula": Generator(
        formula,
        "Random clauses with weights; at least one assignment satisfies all.",
        ("-o clauses.uai", "--variables 200 --clauses 500 --weighted 0 -o count.uai"),
        {
            "variables": "Variables.",
            "clauses": "Clauses.",
            "width": "Literals of a clause.",
            "weighted": "Share of the variables with weights.",
        },
    ),
    "random": Generator(
        random,
        "Random factors on random scopes; with zeros, at least one solution remains.",
        (
            "--variables 50 --factors 75 -o random.uai",
            "--variables 200 --factors 300 --states 5 --scope 4 --zeros 0.3 -o hard.uai",
        ),
        {
            "variables": "Variables.",
            "factors": "Factors.",
            "states": "Largest number of states.",
            "scope": "Largest number of variables of a factor.",
            "zeros": "Share of zeros in the tables.",
            "spread": "Standard deviation of the log entries.",
        },
    ),
    "wildcatter": Generator(
        wildcatter, "An influence diagram of two decisions: test for oil, drill for oil.", ("-o oil.uai",)
    ),
    "pomdp": Generator(
        pomdp,
        "A POMDP as an influence diagram, with random tables.",
        ("--stages 5 --hidden 4 -o pomdp.uai",),
        {
            "stages": "Decisions.",
            "hidden": "Hidden variables of a stage.",
            "observed": "Observed variables of a stage.",
            "states": "States of each variable.",
            "actions": "Actions of each decision.",
            "recall": "Let decisions see all that was seen before, or their own stage only.",
        },
    ),
}


def _command(name: str, generator: Generator) -> Callable[..., None]:
    """The command of a generator, with an option for each of its arguments."""

    def command(**options: Any) -> None:
        output = options.pop("output")
        files = None if inspect.signature(generator.make).return_annotation == "Diagram" else _files(output)
        made = getattr(generate, name)(**options)
        if files is None:
            _write_diagram(made, output)
        else:
            _write(made, files)

    hints = get_type_hints(generator.make)
    parameters = [inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=Output)]
    for key, own in inspect.signature(generator.make).parameters.items():
        words = ("--recall/--limited",) if key == "recall" else ()
        option = typer.Option(
            *words,
            metavar=METAVARS.get(hints[key]),
            min=0 if key == "seed" else None,
            help={**SHARED, **generator.options}[key],
        )
        default = NEEDED.get(key, own.default) if own.default is inspect.Parameter.empty else own.default
        parameters.append(
            inspect.Parameter(
                key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hints[key], option]
            )
        )
    command.__doc__ = generator.summary
    # Typer reads both.
    command.__dict__["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


for _name, _generator in GENERATORS.items():
    generate_app.command(
        _name, epilog=examples(*(f"powersum generate {_name} {words}" for words in _generator.examples))
    )(_command(_name, _generator))


def _write_diagram(diagram: Diagram, output: Path) -> None:
    from powersum.formats.diagrams import diagram_files, write_diagram

    files = diagram_files(output)
    check_outputs(files, [])
    with older_answers_aside(files):
        write_diagram(diagram, output)
    print(f"wrote {', '.join(map(str, files))}: {repr(diagram)[len('<powersum.Diagram: ') : -1]}")


def _files(output: Path) -> tuple[Path, Path]:
    """The files to write, checked: the model and, by the name rule, its query."""
    from powersum.core.files import plain_name

    files = output, Path(plain_name(output) + ".query")
    check_outputs(files, [])
    return files


def _write(instance: generate.Instance, files: tuple[Path, Path]) -> None:
    from powersum import formats

    model, query = instance
    model_file, query_file = files
    # A new model must never stand beside an older query.
    with older_answers_aside(files):
        formats.write(model, model_file)
        formats.write_query(query, query_file)
    print(f"wrote {model_file}: {model.n_variables} variables, {model.n_factors} factors")
    print(f"wrote {query_file}: {len(query)} variables to maximise")

"""``powersum generate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from powersum import generate
from powersum.app.cli.files import check_outputs
from powersum.app.cli.fresh import older_answers_aside
from powersum.app.cli.help import examples
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
Share = Annotated[float, typer.Option(metavar="X", help="Share of the variables in the query.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same instance.")]


@generate_app.command(
    epilog=examples(
        "powersum generate grid --rows 12 --columns 12 --kind bayes --deterministic 0.5 -o grid.uai",
        "powersum generate grid --rows 1000 --columns 1000 --kind attractive -o large.uai.gz",
    )
)
def grid(
    output: Output,
    rows: Annotated[int, typer.Option(metavar="N", help="Rows.")] = 10,
    columns: Annotated[int, typer.Option(metavar="N", help="Columns.")] = 10,
    states: Annotated[int, typer.Option(metavar="N", help="States of each variable.")] = 2,
    kind: Annotated[str, typer.Option(metavar="KIND", help="mixed, attractive, or bayes (with zeros).")] = "mixed",
    strength: Annotated[float, typer.Option(metavar="X", help="Largest coupling of two neighbours.")] = 1.0,
    field: Annotated[float, typer.Option(metavar="X", help="Largest weight of a single state.")] = 0.5,
    deterministic: Annotated[float, typer.Option(metavar="X", help="bayes: share of 0/1 tables.")] = 0.5,
    share: Share = 0.5,
    seed: Seed = 0,
) -> None:
    """A grid: Ising- or Potts-like, or a Bayesian network with deterministic tables."""
    files = _files(output)
    _write(
        generate.grid(
            rows,
            columns,
            states=states,
            kind=kind,
            strength=strength,
            field=field,
            deterministic=deterministic,
            share=share,
            seed=seed,
        ),
        files,
    )


@generate_app.command(
    epilog=examples(
        "powersum generate pedigree --people 30 --loci 4 -o family.uai",
        "powersum generate pedigree --people 200 --loci 10 --alleles 7 --typed 0.3 --seed 1 -o clan.uai",
    )
)
def pedigree(
    output: Output,
    people: Annotated[int, typer.Option(metavar="N", help="People in the family.")] = 30,
    loci: Annotated[int, typer.Option(metavar="N", help="Loci on the chromosome.")] = 4,
    founders: Annotated[
        int | None, typer.Option(metavar="N", help="People without parents; a third if left out.")
    ] = None,
    alleles: Annotated[int, typer.Option(metavar="N", help="Largest number of alleles of a marker.")] = 4,
    typed: Annotated[float, typer.Option(metavar="X", help="Share of the people who were looked at.")] = 0.5,
    recombination: Annotated[float, typer.Option(metavar="X", help="Chance between neighbouring loci.")] = 0.1,
    share: Share = 0.5,
    seed: Seed = 0,
) -> None:
    """A family for genetic linkage analysis, full of hard zeros."""
    files = _files(output)
    _write(
        generate.pedigree(
            people,
            loci,
            founders=founders,
            alleles=alleles,
            typed=typed,
            recombination=recombination,
            share=share,
            seed=seed,
        ),
        files,
    )


@generate_app.command(
    epilog=examples(
        "powersum generate diagnosis --variables 203 --states 7 -o clinic.uai",
        "powersum generate diagnosis --variables 359 --states 6 --observed 0 -o network.uai",
    )
)
def diagnosis(
    output: Output,
    variables: Annotated[int, typer.Option(metavar="N", help="Risks, diseases and findings together.")] = 203,
    states: Annotated[int, typer.Option(metavar="N", help="Largest number of states.")] = 7,
    parents: Annotated[int, typer.Option(metavar="N", help="Largest number of causes.")] = 3,
    observed: Annotated[float, typer.Option(metavar="X", help="Share of the findings that are known.")] = 0.3,
    share: Share = 0.5,
    seed: Seed = 0,
) -> None:
    """A network of risks, diseases and findings with graded noisy-or tables."""
    files = _files(output)
    _write(
        generate.diagnosis(variables, states=states, parents=parents, observed=observed, share=share, seed=seed),
        files,
    )


@generate_app.command(
    epilog=examples(
        "powersum generate detection -o parts.uai",
        "powersum generate detection --parts 60 --states 21 --seed 1 -o parts.uai.gz",
    )
)
def detection(
    output: Output,
    parts: Annotated[int, typer.Option(metavar="N", help="Parts of the object.")] = 60,
    states: Annotated[int, typer.Option(metavar="N", help="Candidate places of each part.")] = 16,
    strength: Annotated[float, typer.Option(metavar="X", help="Log entries are between -4 and 4 times this.")] = 100.0,
    share: Share = 0.92,
    seed: Seed = 0,
) -> None:
    """A part-based detection model: a table for every pair of parts."""
    files = _files(output)
    _write(generate.detection(parts, states=states, strength=strength, share=share, seed=seed), files)


@generate_app.command(
    epilog=examples(
        "powersum generate plan -o robots.uai",
        "powersum generate plan --rooms 20 --steps 12 --robots 5 --fails 0 -o sure.uai",
    )
)
def plan(
    output: Output,
    rooms: Annotated[int, typer.Option(metavar="N", help="Rooms.")] = 8,
    steps: Annotated[int, typer.Option(metavar="N", help="Actions one after the other.")] = 8,
    robots: Annotated[int, typer.Option(metavar="N", help="Robots that each action moves.")] = 3,
    actions: Annotated[int, typer.Option(metavar="N", help="Actions to choose from.")] = 4,
    fails: Annotated[float, typer.Option(metavar="X", help="Chance that a robot does not move.")] = 0.02,
    seed: Seed = 0,
) -> None:
    """A plan without observations: actions that bring all robots to their goals from uncertain starts."""
    files = _files(output)
    _write(generate.plan(rooms, steps, robots=robots, actions=actions, fails=fails, seed=seed), files)


@generate_app.command(
    epilog=examples(
        "powersum generate formula -o clauses.uai",
        "powersum generate formula --variables 200 --clauses 500 --weighted 0 -o count.uai",
    )
)
def formula(
    output: Output,
    variables: Annotated[int, typer.Option(metavar="N", help="Variables.")] = 60,
    clauses: Annotated[int, typer.Option(metavar="N", help="Clauses.")] = 150,
    width: Annotated[int, typer.Option(metavar="N", help="Literals of a clause.")] = 3,
    weighted: Annotated[float, typer.Option(metavar="X", help="Share of the variables with weights.")] = 0.5,
    share: Share = 0.2,
    seed: Seed = 0,
) -> None:
    """Random clauses with weights; at least one assignment satisfies all."""
    files = _files(output)
    _write(generate.formula(variables, clauses, width=width, weighted=weighted, share=share, seed=seed), files)


@generate_app.command(
    epilog=examples(
        "powersum generate random --variables 50 --factors 75 -o random.uai",
        "powersum generate random --variables 200 --factors 300 --states 5 --scope 4 --zeros 0.3 -o hard.uai",
    )
)
def random(
    output: Output,
    variables: Annotated[int, typer.Option(metavar="N", help="Variables.")] = 50,
    factors: Annotated[int, typer.Option(metavar="N", help="Factors.")] = 75,
    states: Annotated[int, typer.Option(metavar="N", help="Largest number of states.")] = 3,
    scope: Annotated[int, typer.Option(metavar="N", help="Largest number of variables of a factor.")] = 3,
    zeros: Annotated[float, typer.Option(metavar="X", help="Share of zeros in the tables.")] = 0.0,
    spread: Annotated[float, typer.Option(metavar="X", help="Standard deviation of the log entries.")] = 1.0,
    share: Share = 0.5,
    seed: Seed = 0,
) -> None:
    """Random factors on random scopes; with zeros, at least one solution remains."""
    files = _files(output)
    _write(
        generate.random(
            variables, factors, states=states, scope=scope, zeros=zeros, spread=spread, share=share, seed=seed
        ),
        files,
    )


@generate_app.command(epilog=examples("powersum generate wildcatter -o oil.uai"))
def wildcatter(output: Output) -> None:
    """An influence diagram of two decisions: test for oil, drill for oil."""
    _write_diagram(generate.wildcatter(), output)


@generate_app.command(epilog=examples("powersum generate pomdp --stages 5 --hidden 4 -o pomdp.uai"))
def pomdp(
    output: Output,
    stages: Annotated[int, typer.Option(metavar="N", help="Decisions.")] = 3,
    hidden: Annotated[int, typer.Option(metavar="N", help="Hidden variables of a stage.")] = 3,
    observed: Annotated[int, typer.Option(metavar="N", help="Observed variables of a stage.")] = 2,
    states: Annotated[int, typer.Option(metavar="N", help="States of each variable.")] = 2,
    actions: Annotated[int, typer.Option(metavar="N", help="Actions of each decision.")] = 2,
    limited: Annotated[bool, typer.Option("--limited", help="Let decisions see their own stage only.")] = False,
    seed: Seed = 0,
) -> None:
    """A POMDP as an influence diagram, with random tables."""
    diagram = generate.pomdp(
        stages, hidden=hidden, observed=observed, states=states, actions=actions, recall=not limited, seed=seed
    )
    _write_diagram(diagram, output)


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

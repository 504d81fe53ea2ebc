"""``powersum-check model.uai [--query F] [--evid F] proof.zip``: verified bounds and exit 0, or one line and 1 or 2."""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path

from powersum_check.best import told_best
from powersum_check.errors import BadFile, CheckError, Rejected
from powersum_check.limits import MEMORY, WORK
from powersum_check.marginals import check_marginals
from powersum_check.model import Model, Question
from powersum_check.names import read_names
from powersum_check.outside import check, read_model
from powersum_check.reading import read_evidence, read_list
from powersum_check.shares import check_shares


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="powersum-check",
        description="Check a certificate of powersum. Exit code 0: proven; 1: not proven; 2: a file is not right.",
    )
    parser.add_argument("model", help="the model: .uai, plain or compressed, or .npz")
    parser.add_argument("certificate", help="the certificate: .zip; with --share a folder of STATE.zip")
    parser.add_argument("--query", help="file with the variables to maximise; all others are summed")
    parser.add_argument("--map", action="store_true", help="maximise all variables")
    parser.add_argument("--evid", help="file with the observed states")
    parser.add_argument(
        "--as-claimed", action="store_true", help="take the question from the certificate, and print it in full"
    )
    parser.add_argument("--show-question", action="store_true", help="print the question in full")
    parser.add_argument(
        "--share",
        type=int,
        metavar="V",
        help="print the distribution of a variable; the certificate is a folder",
    )
    parser.add_argument(
        "--marginals",
        action="store_true",
        help="print the distributions that a certificate of the sum proves",
    )
    parser.add_argument(
        "--exact", action="store_true", help="measure all rounding in ball arithmetic (python-flint); slow"
    )
    parser.add_argument("--memory", type=float, default=float(MEMORY), help="bytes to work with at most")
    parser.add_argument("--work", type=float, default=WORK, help="entries of tables to compute at most")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = _arguments().parse_args(arguments)
    try:
        if not 1e6 <= options.memory <= 1e15:
            raise BadFile("--memory is a number of bytes, at least a million")
        if not options.work > 0.0:
            raise BadFile("--work is a number of entries, above 0")
        memory = int(options.memory)
        model = read_model(options.model, memory)
        if options.as_claimed and (options.map or options.query is not None or options.evid is not None):
            raise BadFile("--as-claimed goes with no other question")
        if options.share is not None or options.marginals:
            return _told_shares(options, model, memory)
        question = None if options.as_claimed else _question(options, model, memory)
        names = read_names(options.model, [int(card) for card in model.cardinalities], memory)
        verified = check(model, question, options.certificate, memory=memory, work=options.work, exact=options.exact)
        if verified.proves_nothing:
            raise Rejected("nothing is proven")
    except CheckError as error:
        print(f"powersum-check: {'NOT VERIFIED: ' if isinstance(error, Rejected) else ''}{error}", file=sys.stderr)
        return 1 if isinstance(error, Rejected) else 2
    except MemoryError:
        print("powersum-check: out of memory", file=sys.stderr)
        return 2
    lines = [f"note: {model.note}"] if model.note else []
    lines.append(f"question: {verified.question.summary()}")
    if options.as_claimed or options.show_question:
        lines.append(verified.question.in_full())
    lines.append(f"verified: {verified.log_lower!r} <= log value <= {verified.log_upper!r} ({verified.n_steps} steps)")
    if verified.assignment is not None and verified.log_lower > -math.inf:
        states = " ".join(f"{v} {s}" for v, s in sorted(verified.assignment.items()))
        lines.append(f"assignment: {len(verified.assignment)} {states}".rstrip())
        if names is not None:
            told = " ".join(names.told(v, s) for v, s in sorted(verified.assignment.items()))
            lines.append(f"by the names of {names.path}: {told}")
    if verified.best is not None:
        lines += told_best(verified.best)
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        # Who was to read it has left, which changes nothing; Python must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _told_shares(options: argparse.Namespace, model: Model, memory: int) -> int:
    """Check a folder of certificates, or one of the sum, and print the distributions that they prove."""
    if options.map or options.query is not None or options.as_claimed:
        raise BadFile("--share and --marginals sum everything: they go with no other question")
    variable = options.share
    evidence = None if options.evid is None else read_evidence(options.evid, memory)
    if options.marginals:
        if variable is not None or options.exact:
            raise BadFile("--marginals goes neither with --share nor with --exact")
        question = Question.of(model, (), evidence)
        found = check_marginals(model, question, options.certificate, memory=memory, work=options.work)
        print(f"question: distributions of all variables; {question.summary()}")
        for v, shares in enumerate(found):
            if shares is None:
                print(f"variable {v}: not proven")
            for state, share in enumerate(shares or ()):
                print(f"verified: {share.lower!r} <= probability of state {state} of variable {v} <= {share.upper!r}")
        return 0
    if not 0 <= variable < len(model.cardinalities):
        raise BadFile(f"--share: there is no variable {variable}")
    paths = [Path(options.certificate, f"{state}.zip") for state in range(model.cardinalities[variable])]
    shares = check_shares(model, variable, paths, evidence, memory=memory, work=options.work, exact=options.exact)
    given = "".join(f" {v} {s}" for v, s in sorted((evidence or {}).items()))
    print(f"question: distribution of variable {variable} given {len(evidence or {})} observed{given}")
    for state, share in enumerate(shares):
        print(f"verified: {share.lower!r} <= probability of state {state} <= {share.upper!r}")
    return 0


def _question(options: argparse.Namespace, model: Model, memory: int) -> Question:
    """The question of the command line. An empty name of a file is an error: a shell variable that is not set."""
    if options.map and options.query is not None:
        raise BadFile("--map and --query are two different questions")
    maximise = list(range(len(model.cardinalities))) if options.map else []
    if options.query is not None:
        maximise = read_list(options.query, memory)
    evidence = None if options.evid is None else read_evidence(options.evid, memory)
    return Question.of(model, maximise, evidence)


if __name__ == "__main__":
    sys.exit(main())

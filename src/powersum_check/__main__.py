"""``powersum-check model.uai [--query F] [--evid F] proof.zip``: verified bounds and exit 0, or one line and 1 or 2."""

from __future__ import annotations

import argparse
import os
import sys

from powersum_check.archive import MEMORY, Archive
from powersum_check.best import told_best
from powersum_check.check import check, question_of
from powersum_check.errors import BadFile, CheckError, Rejected
from powersum_check.model import Model, Question
from powersum_check.reading import read_evidence, read_list, read_model


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="powersum-check",
        description="Check a certificate of powersum. Exit code 0: proven; 1: not proven; 2: a file is not right.",
    )
    parser.add_argument("model", help="the model: .uai, plain or compressed, or .npz")
    parser.add_argument("certificate", help="the certificate: .zip")
    parser.add_argument("--query", help="file with the variables to maximise; all others are summed")
    parser.add_argument("--map", action="store_true", help="maximise all variables")
    parser.add_argument("--evid", help="file with the observed states")
    parser.add_argument(
        "--as-claimed", action="store_true", help="take the question from the certificate, and print it"
    )
    parser.add_argument(
        "--exact", action="store_true", help="measure all rounding in ball arithmetic (python-flint); slow"
    )
    parser.add_argument("--memory", type=float, default=float(MEMORY), help="bytes to work with at most")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = _arguments().parse_args(arguments)
    try:
        if not 1e6 <= options.memory <= 1e15:
            raise BadFile("--memory is a number of bytes, at least a million")
        memory = int(options.memory)
        model = read_model(options.model, memory)
        question: Question | None = None
        if not options.as_claimed:
            question = _question(options, model, memory)
        elif options.query or options.evid or options.map:
            raise BadFile("--as-claimed goes with no other question")
        verified = check(model, question, options.certificate, memory=memory, exact=options.exact)
        lines = [_told(question_of(Archive(options.certificate, memory), model))] if question is None else []
    except CheckError as error:
        print(f"powersum-check: {'NOT VERIFIED: ' if isinstance(error, Rejected) else ''}{error}", file=sys.stderr)
        return 1 if isinstance(error, Rejected) else 2
    except MemoryError:
        print("powersum-check: out of memory", file=sys.stderr)
        return 2
    lines.append(f"verified: {verified.log_lower!r} <= log value <= {verified.log_upper!r} ({verified.n_steps} steps)")
    if verified.assignment is not None:
        states = " ".join(f"{v} {s}" for v, s in sorted(verified.assignment.items()))
        lines.append(f"assignment: {len(verified.assignment)} {states}".rstrip())
    if verified.best is not None:
        lines += told_best(verified.best)
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        # Who was to read it has left, which changes nothing; Python must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _question(options: argparse.Namespace, model: Model, memory: int) -> Question:
    """The question of the command line."""
    n = len(model.cardinalities)
    if options.map and options.query:
        raise BadFile("--map and --query are two different questions")
    maximise = list(range(n)) if options.map else read_list(options.query, memory) if options.query else []
    if any(v >= n for v in maximise):
        raise BadFile(f"{options.query}: variable {max(maximise)} does not exist")
    return Question.of(model, maximise, read_evidence(options.evid, memory) if options.evid else None)


def _told(question: Question) -> str:
    """A question in one line."""
    maxima = [v for v, w in enumerate(question.weights) if w == 0.0]
    others = {v: w for v, w in enumerate(question.weights) if w not in (0.0, 1.0)}
    parts = [f"maximise {maxima}", f"evidence {dict(sorted(question.evidence.items()))}"]
    if others:
        parts.append(f"weights {others}")
    if question.likelihoods:
        parts.append(f"likelihoods {dict(sorted(question.likelihoods.items()))}")
    if question.order is not None:
        parts.append(f"order {list(question.order)}")
    return "question: " + ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())

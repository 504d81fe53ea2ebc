"""The options with which a command takes its question, written once for all commands that take one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, get_type_hints

from powersum.app.cli.files import (
    EvidenceFile,
    EvidencePairs,
    Likelihoods,
    MaxNames,
    ModelFile,
    NamesFile,
    QueryFile,
    read_question,
)
from powersum.model.limits import Limits
from powersum.model.question import Question


@dataclass(frozen=True, slots=True)
class CommandEvidence:
    """A model and what is observed, as files and options give them."""

    model: ModelFile
    evid: EvidenceFile = None
    evidence: EvidencePairs = None
    names: NamesFile = None
    likelihood: Likelihoods = None

    @property
    def files(self) -> list[Path | None]:
        """The files that are read, and must not be written over."""
        return [self.model, self.evid, self.names]

    def read(self, *, order: Path | None = None, limits: Limits | None = None) -> tuple[Question, tuple[str, ...]]:
        """The question, and what there is to say about the files."""
        return self._read(query=None, max_names=None, usable=("--evid",), order=order, limits=limits)

    def _read(self, **options: Any) -> tuple[Question, tuple[str, ...]]:
        return read_question(
            self.model,
            evid=self.evid,
            evidence=self.evidence,
            names=self.names,
            likelihoods=self.likelihood,
            **options,
        )


@dataclass(frozen=True, slots=True)
class CommandQuestion(CommandEvidence):
    """The same with the variables to maximise."""

    query: QueryFile = None
    max_names: MaxNames = None

    @property
    def files(self) -> list[Path | None]:
        """The files that are read, and must not be written over."""
        return [self.model, self.query, self.evid, self.names]

    def read(self, *, order: Path | None = None, limits: Limits | None = None) -> tuple[Question, tuple[str, ...]]:
        """The question, and what there is to say about the files."""
        return self._read(query=self.query, max_names=self.max_names, order=order, limits=limits)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``asked`` is filled from the options of its type, which stand in its place."""
    hints = get_type_hints(command, include_extras=True)
    kind = hints["asked"]
    own = get_type_hints(kind, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == "asked":
            for item in fields(kind):
                default = inspect.Parameter.empty if item.default is MISSING else item.default
                parameters.append(
                    inspect.Parameter(
                        item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=own[item.name]
                    )
                )
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def filled(**given: Any) -> None:
        command(asked=kind(**{item.name: given.pop(item.name) for item in fields(kind)}), **given)

    # Typer reads both.
    filled.__dict__["__signature__"] = inspect.Signature(parameters)
    filled.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return filled

"""A cube: a box of a question that was split by setting variables, and who works on it."""

from __future__ import annotations

from dataclasses import dataclass

from powersum.divide.box import StatesBox


@dataclass(slots=True, eq=False, kw_only=True)
class Cube(StatesBox):
    """A cube, what its own slice has shown, and the cubes it was split into.

    Attributes
    ----------
    asked, running, parted
        Whether somebody was given it, is at it still, and whether somebody else was told to split it meanwhile.
    since
        Second of the run at which it was given to somebody last.
    long
        Whether it is to be worked on for long.
    """

    asked: bool = False
    running: bool = False
    parted: bool = False
    since: float = 0.0
    long: bool = False

    @property
    def cube(self) -> dict[int, int]:
        """The variables that are set, and their states."""
        return {variable: state for variable, (state,) in self.allowed.items()}


def split(node: Cube, variable: int, n_states: int) -> None:
    """Cubes for the states of a variable; until they are bounded themselves, they have the bound of the whole."""
    node.variable = variable
    for state in range(n_states):
        allowed = {**node.allowed, variable: frozenset((state,))}
        part = Cube(log_upper=node.log_upper, allowed=allowed, around=node, log_proven=node.log_proven)
        node.parts.append(part)

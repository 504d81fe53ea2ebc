"""Stages of a diagram, what decisions influence, and what they need to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powersum.model.diagram import Diagram


@dataclass(frozen=True, slots=True)
class Stages:
    """The decisions that are still open, in stages: a stage begins where something new is seen.

    Parameters
    ----------
    open
        Numbers of the choices whose decision is not observed, in their order.
    of_choice
        The stage of each of them.
    n
        How many stages there are.
    seen
        The stage before which each variable is first seen; variables that are never seen are not in it.
    influenced
        The last stage with a decision that influences the variable; -1 where none does.
    """

    open: tuple[int, ...]
    of_choice: dict[int, int]
    n: int
    seen: dict[int, int]
    influenced: tuple[int, ...]

    @classmethod
    def of(cls, diagram: Diagram, observed: Mapping[int, int]) -> Stages:
        """The stages of a diagram, some states of which are observed."""
        open_choices = tuple(k for k, choice in enumerate(diagram.choices) if choice.variable not in observed)
        stage = -1
        of_choice: dict[int, int] = {}
        seen: dict[int, int] = {}
        new: set[int] = set()
        for k, choice in enumerate(diagram.choices):
            new |= set(choice.sees) - set(observed) - set(seen)
            if choice.variable in observed:
                continue
            if new or stage < 0:
                stage += 1
                seen.update(dict.fromkeys(new - set(diagram.decisions), stage))
                new = set()
            of_choice[k] = stage
        last = [-1] * diagram.model.n_variables
        for k in open_choices:
            for v in influenced_by(diagram, diagram.choices[k].variable):
                last[v] = max(last[v], of_choice[k])
        return cls(open_choices, of_choice, stage + 1, seen, tuple(last))


def influenced_by(diagram: Diagram, decision: int) -> set[int]:
    """The decision and the chance variables below it, without what later decisions make of them."""
    below = {decision}
    children: dict[int, list[int]] = {}
    for child, above in diagram.parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    waiting = [decision]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in below:
                below.add(child)
                waiting.append(child)
    return below


def requisite(diagram: Diagram, observed: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """For each open choice what of its knowledge can matter, in the order in which it is seen.

    From the last decision to the first: what is separated from the utilities below the decision by the decision and the
    rest of its knowledge does not matter. A later decision then depends on what matters to it.
    """
    parents = {v: set(above) for v, above in diagram.parents.items()}
    for k, choice in enumerate(diagram.choices):
        parents[choice.variable] = set(diagram.known(k)) - set(observed)
    needed: dict[int, tuple[int, ...]] = {}
    for k in reversed(range(len(diagram.choices))):
        variable = diagram.choices[k].variable
        if variable in observed:
            parents[variable] = set()
            continue
        known = [v for v in diagram.known(k) if v not in observed]
        below = _descendants(parents, variable)
        utilities = [set(u.scope) for u in diagram.utilities if below & set(u.scope)]
        keep = list(known)
        for v in reversed(known):
            given = {*keep, variable, *observed} - {v}
            if not _connected(parents, v, given, utilities):
                keep.remove(v)
        needed[k] = tuple(keep)
        parents[variable] = set(keep)
    return needed


def _descendants(parents: Mapping[int, set[int]], variable: int) -> set[int]:
    below = {variable}
    changed = True
    while changed:
        more = {v for v, above in parents.items() if v not in below and above & below}
        below |= more
        changed = bool(more)
    return below


def _connected(parents: Mapping[int, set[int]], start: int, given: set[int], utilities: Sequence[set[int]]) -> bool:
    """Whether what is given does not separate a variable from some utility, a leaf with these parents: Bayes ball."""
    children: dict[int, set[int]] = {}
    for v, above in parents.items():
        for parent in above:
            children.setdefault(parent, set()).add(v)
    # Utilities hang below their scope; nothing hangs below a utility.
    targets = set().union(*utilities) - given
    if start in targets:
        return True
    waiting, visited = [(start, "from child")], set()
    while waiting:
        v, way = waiting.pop()
        if (v, way) in visited:
            continue
        visited.add((v, way))
        if v in targets:
            return True
        if way == "from child" and v not in given:
            waiting += [(p, "from child") for p in parents.get(v, ())]
            waiting += [(c, "from parent") for c in children.get(v, ())]
        elif way == "from parent":
            if v in given:
                waiting += [(p, "from child") for p in parents.get(v, ())]
            else:
                waiting += [(c, "from parent") for c in children.get(v, ())]
    return False

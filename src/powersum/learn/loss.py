"""``Loss``: what is minimised to learn, with its gradient, for any optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from powersum.api.gradient import BoundFunction
from powersum.core.arrays import FloatArray
from powersum.core.errors import InputError
from powersum.learn.example import Example
from powersum.learn.terms import Term, joint_terms, likelihood_terms, margin_terms, pseudo_terms
from powersum.model.keys import as_text
from powersum.model.limits import number

Terms = Callable[[Example, float], tuple[Term, Term]]

OBJECTIVES: Mapping[str, Terms] = MappingProxyType(
    {
        "likelihood": lambda example, margin: likelihood_terms(example),
        "margin": margin_terms,
        "joint margin": joint_terms,
        "pseudo-likelihood": lambda example, margin: pseudo_terms(example),
    }
)
"""Names of objectives, and the two questions that each takes the difference of."""


class Loss:
    """The mean over all examples of one of these, each the difference of a free term and one with the labels given.

    ``"likelihood"``: minus the log probability of the labels given the evidence, hidden variables summed. The free term
    is an upper bound on log Z: so the loss is at least the true one, but for rounding, where ``exact_given`` holds.
    ``"margin"``: the marginal structured SVM, the best labels against the right ones, hidden variables summed in both.
    ``"joint margin"``: the same with hidden variables maximised. ``"pseudo-likelihood"``: each label given all others.

    Parameters
    ----------
    examples
        All with the same number of parameters. Those whose models have the same scopes, with the same variables
        observed, share one tree.
    objective
        One of :data:`OBJECTIVES`.
    l2
        Half of this times the sum of squares of the parameters is added.
    margin
        What a wrong label counts, for the two that have margins.
    temperature
        Maxima are softened to this weight; they have kinks at 0.
    ibound, sweeps, steps, memory, threads, seed
        As in :class:`powersum.BoundFunction`.

    Attributes
    ----------
    n_parameters
        Number of parameters.
    exact_given
        Whether all terms with the labels given are exact.
    """

    def __init__(
        self,
        examples: Iterable[Example],
        objective: str = "likelihood",
        *,
        l2: float = 0.0,
        margin: float = 1.0,
        temperature: float = 0.1,
        ibound: int | None = None,
        sweeps: int = 5,
        steps: int = 1,
        memory: float | str | None = None,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        if objective not in OBJECTIVES:
            raise InputError(f"objective is {as_text(objective)}: give one of {', '.join(OBJECTIVES)}")
        self._l2 = number(l2, "l2")
        if self._l2 < 0.0:
            raise InputError(f"l2 is {l2}: it must be 0 or more")
        found = list(examples)
        if not found or not all(isinstance(example, Example) for example in found):
            raise InputError("examples must be one powersum.learn.Example or more")
        if len({example.n_parameters for example in found}) > 1:
            raise InputError("examples must all have the same number of parameters")
        self.n_parameters = found[0].n_parameters
        options = {
            "temperature": temperature,
            "ibound": ibound,
            "sweeps": sweeps,
            "steps": steps,
            "memory": memory,
            "threads": threads,
            "seed": seed,
        }
        trees: dict[tuple[Any, ...], BoundFunction] = {}

        def gradient_of(term: Term) -> BoundFunction:
            if term.key not in trees:
                trees[term.key] = BoundFunction(term.model, term.maximize, evidence=term.evidence, **options)  # type: ignore[arg-type]
            return trees[term.key].with_evidence(term.evidence)

        self._pairs = [
            tuple((term, gradient_of(term)) for term in OBJECTIVES[objective](example, number(margin, "margin")))
            for example in found
        ]
        self.exact_given = all(pair[1][1].exact for pair in self._pairs)

    def __call__(self, parameters: Any) -> tuple[float, FloatArray]:
        """The loss and its gradient, for example for ``scipy.optimize.minimize(…, jac=True)``."""
        theta: FloatArray = np.asarray(parameters, dtype=np.float64)
        if theta.shape != (self.n_parameters,):
            raise InputError(f"parameters have shape {theta.shape}: there are {self.n_parameters}")
        value = 0.5 * self._l2 * float(theta @ theta)
        slopes = self._l2 * theta
        for pair in self._pairs:
            for sign, (term, gradient) in zip((1.0, -1.0), pair, strict=True):
                bound, beliefs = gradient(term.model.log_values + term.features @ theta)
                value += sign * bound / len(self._pairs)
                slopes = slopes + sign / len(self._pairs) * (term.features.T @ beliefs)
        return value, slopes

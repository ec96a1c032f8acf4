"""Which nodes are there in a round and which are away, and whether a method knows how often."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.random import Generator

from ..base.messages import unmatched
from ..checks import Check, ChecksNames, Each, check_fields, checked, inside, is_number, per
from ..errors import MethodError
from ..form import Form
from ..terms import Array
from .streams import Streams
from .view import LocalView

Sampler = Callable[[int, tuple[Hashable, ...], Array, Generator], Any]


def _takes_four(sampler: Any) -> bool:
    try:
        signature(sampler).bind(1, (), None, None)
    except (TypeError, ValueError):
        return False
    return True


PROBABILITY = per("node", inside("(0, 1]", "in (0, 1]"))
SAMPLER = Check("a function of t, labels, uniform and common", _takes_four)


@dataclass(frozen=True)
class Presence:
    """The knowledge of a run of which nodes are there."""

    p: Array | None  # p_i, 1 at latent nodes, (n,); None where only a sampler decides
    online: Array  # rounds in which each node was there, (n,)


@dataclass(frozen=True)
class Availability(ChecksNames):
    """Clients (nodes) that are not always there: R_i(t) = 1 with probability p_i, independently from round to round
    (Algorithm 2 of graph-fused M-estimation).

    `FedADMM`, `LocalSGD`, `FedAvg`, `FedProx`, `ClusteredFedAvg`, `SCAFFOLD`, `PFedMe`, `Ditto` and `IFCA` take it as
    ``availability=``, on any engine: a probability, one per node, a sampler, or an Availability. The same seed draws
    the same nodes in the same rounds for each of them (the rounds of LocalSGD are its gossips). A node that is away
    sends nothing, and the ledger counts how often it was (``ledger.by_node()["away"]``). A node that *fails*, and
    forgets what it had heard, is a crash: `Faults`.

    Parameters
    ----------
    probability : number or mapping, optional
        p_i in (0, 1]: one for all nodes, or one per label. May be left out where there is a sampler.
    sampler : callable, optional
        Who is there in a round, where the nodes do not decide independently of each other: ``sampler(t, labels,
        uniform, common)`` returns one bool per label. t = 1, 2, ... is the round; ``labels`` are those of the nodes
        that are asked about (on isolated actors a node and its neighbours); ``uniform`` (len(labels),) are numbers in
        [0, 1), each its node's own; ``common`` is a numpy Generator that begins anew in every round and is the same
        for all nodes: what nodes share is drawn from it, in an order that does not depend on the labels. The answer
        for a node must follow from t, its label and these numbers alone, since its neighbours must find the same.
    known : bool
        Whether a method may use the probabilities. Where it may not, or where there are none, each node is taken to be
        there in the proportion of the rounds in which it was so far. Only inverse-probability weights need to know:
        those of ``FedADMM(while_away="ipw")`` and of the means at a server.

    Latent nodes (of a hierarchy) are nobody's devices, and always there.

    Examples
    --------
    >>> often = gr.Availability({"a": 1.0, "b": 0.5, "c": 1.0, "d": 0.9})
    >>> run = problem.solve(gr.FedADMM(availability=often), seed=0)
    >>> run.status, run.ledger.by_node()["away"].gt(0).tolist()
    ('certified', [False, True, False, True])
    """

    probability: float | Mapping[Hashable, float] | None = checked(PROBABILITY, None)
    sampler: Sampler | None = checked(SAMPLER, None)
    known: bool = True

    def __post_init__(self) -> None:
        if self.probability is None and self.sampler is None:
            raise MethodError("an Availability needs a probability, a sampler, or both")
        check_fields(self, MethodError)

    @staticmethod
    def of(value: Any) -> Availability | None:
        """The availability from what a user gives: None, a number, a mapping, a sampler, or an Availability."""
        if value is None or isinstance(value, Availability):
            return value
        if is_number(value) or isinstance(value, Mapping):
            return Availability(value)
        return Availability(sampler=value)

    def missing(self, form: Form) -> tuple[str, ...]:
        """Nodes without a probability, and probabilities without a node, as sentences."""
        return tuple(unmatched("availability", self.probability, form.space.index))

    def begin(self, view: LocalView) -> Presence:
        """What is known before the first round."""
        p = None if self.probability is None else per_node(view.form, self.probability, 1.0)
        return Presence(p, np.zeros(view.form.n, dtype=np.int64))

    def attend(self, view: LocalView, t: int, presence: Presence) -> tuple[Array, Array, Presence]:
        """The nodes that are there in round t, (n,) bool, noted in the ledger; the arcs both of whose ends are,
        (2p,) bool; and what is known after the round."""
        present = self.present(view, t, presence.p)
        view.engine.away(~present & view.own)
        along = present[view.arcs.source] & present[view.arcs.target]
        return present, along, Presence(presence.p, presence.online + present)

    def inverse(self, presence: Presence, t: int) -> Array:
        """1/p_i, p_i known or else the proportion of the rounds so far, (n,)."""
        return 1.0 / presence.p if self.known and presence.p is not None else t / np.maximum(presence.online, 1)

    def present(self, view: LocalView, t: int, p: Array | None) -> Array:
        """The nodes of the view that are there in round t = 1, 2, ..., (n,) bool; p as in `Presence`."""
        uniform = view.streams("availability").uniform(t, 1)[:, 0]
        if self.sampler is None:
            assert p is not None
            return uniform < p
        labels = tuple(view.form.labels[: view.form.space.n_observed])
        common = Streams(view.seed, "network coin", [0]).generator(0, t)
        drawn = np.asarray(self.sampler(t, labels, uniform[: len(labels)].copy(), common))
        if drawn.shape != (len(labels),) or drawn.dtype != np.bool_:
            raise MethodError(
                f"the sampler of an Availability must return {len(labels)} bools, one per label, in round {t}; it "
                f"returned an array of shape {drawn.shape} and type {drawn.dtype}"
            )
        return np.concatenate([drawn, np.full(view.form.n - len(labels), True)])


def _is_availability(value: Any) -> bool:
    whole = value is None or isinstance(value, Availability) or PROBABILITY.holds(value)
    return whole or (callable(value) and not isinstance(value, type) and _takes_four(value))


AVAILABILITY = Each(
    "a probability in (0, 1], a mapping from nodes to probabilities, a function of t, labels, uniform and common, or "
    "gr.Availability(probability, sampler, known=False) where it is to be estimated",
    _is_availability,
    every=PROBABILITY,
)


class TakesAvailability:
    """A method with a field ``availability``, ``checked(AVAILABILITY, None)``, that says which nodes are there."""

    availability: Any

    @cached_property
    def away(self) -> Availability | None:
        """The nodes that are there; None: all, always."""
        return Availability.of(self.availability)

    @property
    def drawn(self) -> bool:
        """True where its rounds are drawn at random."""
        return self.away is not None

    def unmatched_nodes(self, form: Form) -> tuple[str, ...]:
        """What is wrong with the labels of the availability, as sentences."""
        return () if self.away is None else self.away.missing(form)

    def nobody_away(self, view: LocalView) -> Presence | None:
        """What is known before the first round; None where all are always there."""
        return None if self.away is None else self.away.begin(view)


def per_node(form: Form, values: Any, latent: float) -> Array:
    """A number, or a mapping from the observed nodes, as an array (n,); ``latent`` at latent nodes."""
    observed = form.labels[: form.space.n_observed]
    own = [values[label] for label in observed] if isinstance(values, Mapping) else [values] * len(observed)
    return np.array([*own, *[latent] * len(form.latent)], dtype=float)

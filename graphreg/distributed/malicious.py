"""Nodes that send something else than their method says."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.messages import shown, unknown_labels
from ..checks import check_fields, checked, function, nonnegative, one_of, sequence
from ..errors import MethodError
from ..form import Form
from ..methods import AbstractIteration, AbstractMethod
from ..network import Arcs, LocalView, arcs_of
from ..running import ONE_ENGINE, AbstractEngine, Start
from ..terms import Array

Attack = Callable[[Array, np.random.Generator], Array]


@dataclass(frozen=True)
class Malicious(AbstractEngine):
    """Run a method on a network some nodes of which lie: ``problem.solve(method, engine=gr.Malicious(["a"]))``.

    In every round they send, in place of the numbers v that the method has them send to a neighbour or a server,

        "sign flip"   -size v           "constant"   size in every entry         "noise"   v + size N(0, 1)

    to all alike; numbers of models (`IFCA`) are among v. What precedes the first round is honest, and so are sums over
    all nodes. A method is run on whole arrays, and takes the lie for what the liar has (but for ``robust=`` of
    `LocalSGD`, which goes on from what the liar truly has): what that node itself ends with means nothing.

    A certificate knows nothing of who lies: it is of the whole problem, the data of the liars included, and true. What
    the honest nodes reached is seen by an observer, ``observe=``, node by node; ``gr.compare(..., score=rows)`` scores
    them alone.

    Parameters
    ----------
    nodes : sequence of labels
    attack : {"sign flip", "constant", "noise"} or function
        A function takes the numbers (k, m) of the k malicious nodes and a numpy Generator, and returns as many.
    size : float
        1 by default.

    Examples
    --------
    >>> method = gr.PrimalDual(balance=1.0)
    >>> run = problem.solve(method, engine=gr.Malicious(["a"], size=10.0), rounds=20, gap=0, seed=0)
    >>> run.status
    'budget'
    """

    nodes: Sequence[Hashable]
    attack: str | Attack = checked(
        one_of("sign flip", "constant", "noise") | function("a function of the numbers and a Generator"), "sign flip"
    )
    size: float = checked(nonnegative, 1.0)
    elsewhere = dict.fromkeys(("faults", "drop", "crash"), ONE_ENGINE)

    def __post_init__(self) -> None:
        check_fields(self, MethodError)
        if isinstance(self.nodes, (str, bytes)):  # its letters would be taken for labels
            raise MethodError(f"Malicious(nodes=...) takes labels, not one: give a list, [{shown(self.nodes)}]")
        sequence(self.nodes, "Malicious(nodes=...)", "a list of labels", MethodError)

    @property
    def liars(self) -> Sequence[Hashable]:
        return self.nodes

    def remedy(self, form: Form, method: AbstractMethod) -> str:
        from ..methods import LocalSGD

        robust = "robust= of gr.LocalSGD keeps lies within what honest nodes send, and " * (not LocalSGD().lacks(form))
        said = f"malicious nodes lie ({len(self.nodes)}), and more rounds need not lead closer; {robust}"
        said += "observe=, or score= of gr.compare, shows what honest nodes reached"
        return said if len(self._rows(form)) else ""

    def _rows(self, form: Form) -> Array:
        """The liars that have anybody to lie to."""
        place = {label: i for i, label in enumerate(form.labels)}
        for said in unknown_labels("the nodes of Malicious", dict.fromkeys(self.nodes), place):
            raise MethodError(said)
        rows = np.array([place[label] for label in self.nodes], dtype=np.intp)
        return rows[np.isin(rows, arcs_of(form).source)]

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[AbstractIteration]:
        """The method, on views whose engine lies from the first round on."""
        rows, rng = self._rows(form), np.random.default_rng(seed)
        if not len(rows):
            yield method
            return

        def begin(view: LocalView, start: Start | None) -> Any:
            engine: Any = _Lying(view, rows, lambda values: self._lie(values, rng))
            state = method.init(replace(view, engine=engine), start)
            engine.lies = True
            return state

        player = copy.copy(method)  # the same in all else, but that a polish would go past the network
        vars(player).update(init=begin, polishes=lambda: False)
        yield player

    def _lie(self, values: Array, rng: np.random.Generator) -> Array:
        if callable(self.attack):
            try:
                lies = np.asarray(self.attack(values, rng), dtype=float)
                if lies.shape != values.shape:
                    raise ValueError(f"it returned {lies.shape}")
                return lies
            except (TypeError, ValueError) as error:
                asked = f"the numbers {values.shape} of the malicious nodes and a Generator, and returns as many"
                raise MethodError(f"attack= of Malicious takes {asked}: {type(error).__name__}: {error}") from error
        if self.attack == "sign flip":
            return -self.size * values
        if self.attack == "constant":
            return np.full(values.shape, self.size)
        return values + self.size * rng.standard_normal(values.shape)


class _Lying:
    """An engine that passes on what malicious nodes send; in all else the engine itself."""

    def __init__(self, view: LocalView, rows: Array, lie: Callable[[Array], Array]) -> None:
        self.engine, self.view, self.rows, self.lie, self.lies = view.engine, view, rows, lie, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def _passed(self, values: Array, lied: Array) -> Array:
        """The values, with lies in these rows."""
        if self.lies and len(lied) and values.size:
            values = values.copy()
            values[lied] = self.lie(values[lied])
        return values

    def exchange(self, values: Array, along: Array | None = None, **more: Any) -> Array:
        received = self.engine.exchange(values, along, **more)
        sending = self.view.arcs.source if along is None else self.view.arcs.source[along]
        return self._passed(received, self.rows[np.isin(self.rows, sending)])

    def swap_ends(self, values: tuple[Array, ...], toward: tuple[Array, ...], along: Array) -> tuple[Array, ...]:
        received = self.engine.swap_ends(values, toward, along)
        back = [np.roll(each, len(each) // 2) for each in toward]  # from the other ends, which send
        lied = along & np.isin(self.view.arcs.source, self.rows)
        return tuple(self._passed(each, np.flatnonzero(lied[k])) for each, k in zip(received, back, strict=True))

    def send_back(self, flows: tuple[Array, ...]) -> tuple[Array, ...]:
        """Of rows that are no edges the owner keeps the flow."""
        received = self.engine.send_back(flows)
        blocks = zip(received, self.view.rows, strict=True)
        lied = [[] if b.map.edges is not None else np.isin(b.map.owner, self.rows) for _, b in blocks]
        return tuple(self._passed(each, np.flatnonzero(k)) for each, k in zip(received, lied, strict=True))

"""The kinds of algorithms: a function that yields points, a step that is run node by node, an iteration of the
library, or an iterable of points."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np

from ..base.messages import did_you_mean
from ..distributed.actors import NodePart, split
from ..errors import MethodError
from ..methods import METHOD, AbstractIteration, AbstractMethod
from ..network import NUMBER, InProcess, Ledger, LocalView, arcs_of
from ..oracles import Oracles
from ..problem import Problem
from ..terms import Array
from .instances import with_latent


# ---- a node of a step that is run node by node: its data, its neighbours' names and messages -------------------------
class Node:
    """The data of one node: its losses, its edges and nothing of any other node.

    Attributes
    ----------
    label : hashable
    neighbours : tuple of hashables
    d : int
        The number of coordinates.
    weight : dict
        c_e, strength x edge weight, by neighbour; 1 for constraints.
    start : array (d,) or None
        Where to begin, if anything is said.
    rng : numpy.random.Generator
        A stream of random numbers of its own.
    """

    def __init__(self, part: NodePart, start: Array | None, seed: int) -> None:
        self._oracles = Oracles(part.form)
        self._me = int(np.flatnonzero(part.whole.own)[0])
        self.label, self.d, self.start = part.label, part.form.d, start
        self.rng = np.random.default_rng([seed, part.node])
        o = self._oracles
        self._edge: dict[Hashable, int] = {}
        for e, (i, j) in enumerate(zip(o.tail.tolist(), o.head.tolist(), strict=True)):
            self._edge.setdefault(o.labels[j if i == self._me else i], e)
        self.neighbours = tuple(self._edge)
        self.weight = {label: float(o.weight[e]) for label, e in self._edge.items()}

    @property
    def smoothness(self) -> float:
        """L, the Lipschitz constant of `gradient`; inf where there is none."""
        return float(self._oracles.smoothness[self._me])

    def gradient(self, w: Array) -> Array:
        """The gradient of the node's losses, and of its penalty where that is smooth, (d,)."""
        return self._oracles.gradient(self._rows(w))[self._me]

    def prox(self, v: Array, step: float) -> Array:
        """argmin over w of the node's losses and ridges at w plus ||w - v||^2 / (2 step), (d,)."""
        return self._oracles.prox(self._rows(v), step)[self._me]

    def node_prox(self, v: Array, step: float) -> Array:
        """The prox of step times the node's own penalty, (d,)."""
        return self._oracles.node_prox(self._rows(v), step)[self._me]

    def edge_prox(self, neighbour: Hashable, z: Array, step: float) -> Array:
        """The prox of step c_e phi at z, (d,), e the edge to a neighbour."""
        return self._at_edge(neighbour, z, step, self._oracles.edge_prox)

    def dual_prox(self, neighbour: Hashable, u: Array, step: float) -> Array:
        """The prox of step (c_e phi)* at the flow u, (d,), e the edge to a neighbour."""
        return self._at_edge(neighbour, u, step, self._oracles.dual_prox)

    def _at_edge(self, neighbour: Hashable, row: Array, step: float, prox: Any) -> Array:
        if neighbour not in self._edge:
            hint = did_you_mean(neighbour, self._edge)
            raise MethodError(f"the node {self.label!r} asks for its edge to {neighbour!r}, no neighbour{hint}")
        rows = np.zeros((len(self._oracles.tail), self.d))
        rows[self._edge[neighbour]] = row
        return prox(rows, step)[self._edge[neighbour]]

    def _rows(self, w: Array) -> Array:
        out = np.zeros((self._oracles.n, self.d))
        out[self._me] = w
        return out

    def __repr__(self) -> str:
        return f"Node({self.label!r}, neighbours {list(self.neighbours)!r})"


# ---- kinds of algorithms ---------------------------------------------------------------------------------------------
WANTED = (
    "a function algorithm(problem, start=None, seed=None) that yields the parameters after each round, a function "
    "step(state, node, messages) -> (state, messages), a method such as gr.PrimalDual(), or an iterable of parameters"
)


@dataclass
class Stream:
    """The points of one run, what it has sent so far (messages and bytes, None where nobody counts them), and how many
    sums over all nodes it has asked for."""

    points: Iterator[Any]
    sent: Callable[[], tuple[int, int] | None] = field(default=lambda: None)
    sums: Callable[[], int] = field(default=lambda: 0)

    def __del__(self) -> None:
        """Drop the points in silence: Python would print of a generator with a bare ``except`` that it cannot end it,
        once for every run."""
        before, sys.unraisablehook = sys.unraisablehook, lambda said: None
        try:
            vars(self).clear()
        finally:
            sys.unraisablehook = before


class AbstractAlgorithm(ABC):
    """An algorithm that can be run, perhaps on other problems, from other starts and with other seeds."""

    kind: ClassVar[str]
    name: str
    repeatable: ClassVar[bool] = True  # whether it can be run again, and on another problem
    isolated: ClassVar[bool] = False  # whether a node cannot see more than its neighbours' messages
    takes_start: bool = True
    takes_seed: bool = True

    @property
    def count(self) -> int | None:
        """How many points are there already, all of which are read; None where they are not."""
        return None

    @abstractmethod
    def run(self, problem: Problem, start: Array | None, seed: int) -> Stream:
        """A run from its beginning; ``start`` (n_observed, d) only where it takes one."""

    def check(self, problem: Problem) -> None:
        """Refuse a problem to which it is known not to apply."""


@dataclass(frozen=True)
class FunctionAlgorithm(AbstractAlgorithm):
    """``algorithm(problem, start=None, seed=None)`` that yields w, or (w, flows)."""

    kind: ClassVar[str] = "function"
    function: Callable[..., Iterable[Any]]
    name: str
    takes_start: bool
    takes_seed: bool

    def run(self, problem: Problem, start: Array | None, seed: int) -> Stream:
        given: dict[str, Any] = {"start": start} if self.takes_start else {}
        if self.takes_seed:
            given["seed"] = seed
        found = self.function(problem, **given)
        if not isinstance(found, Iterable) or (isinstance(found, np.ndarray) and found.ndim < 3):
            said = f"an array of the shape {found.shape}: use yield" if isinstance(found, np.ndarray) else repr(found)
            raise MethodError(f"{self.name}(problem) must yield the parameters after each round, and returned {said}")
        return Stream(iter(found))


@dataclass(frozen=True)
class Iterates(AbstractAlgorithm):
    """Points that are there already, or come from somewhere: they can be judged, and not be run again."""

    kind: ClassVar[str] = "iterable"
    repeatable: ClassVar[bool] = False
    points: Iterable[Any]
    name: str = "the points"
    takes_start: bool = False
    takes_seed: bool = False

    @property
    def count(self) -> int | None:
        return len(self.points) if isinstance(self.points, Sized) else None

    def run(self, problem: Problem, start: Array | None, seed: int) -> Stream:
        return Stream(iter(self.points))


@dataclass(frozen=True)
class Iteration(AbstractAlgorithm):
    """An iteration of the library, or of a user's, see docs/adding-a-method.md."""

    kind: ClassVar[str] = "iteration"
    method: AbstractIteration
    name: str

    def run(self, problem: Problem, start: Array | None, seed: int) -> Stream:
        self.check(problem)
        form = problem.form.frozen()
        ledger = Ledger(arcs_of(form), form.labels)
        view = LocalView(form, InProcess(ledger), seed)

        def points() -> Generator[Array]:
            state = self.method.init(view, None if start is None else (with_latent(form, start), None))
            while True:
                state = self.method.step(state)
                yield self.method.point(state)[0]

        return Stream(points(), ledger.sent, lambda: sum(each.sums for each in ledger.accounts.values()))

    def check(self, problem: Problem) -> None:
        if missing := self.method.missing(problem.form):
            raise MethodError(f"{self.name} does not apply: " + "; ".join(missing), missing)


@dataclass(frozen=True)
class NodeStep(AbstractAlgorithm):
    """``step(state, node, messages) -> (state, messages)``, run at every node by itself.

    The first ``state`` is None. ``messages`` holds what each neighbour sent in the round before, by its label; what is
    returned is sent to all neighbours, or to those that a mapping names. The state is the node's parameters (d,), or a
    tuple that begins with them, or a mapping that has them as "w".
    """

    kind: ClassVar[str] = "step"
    isolated: ClassVar[bool] = True
    step: Callable[..., Any]
    name: str

    def run(self, problem: Problem, start: Array | None, seed: int) -> Stream:
        form = problem.form.frozen()
        whole = None if start is None else with_latent(form, start)
        nodes = [
            Node(part, None if whole is None else whole[part.node].copy(), seed) for part in split(form, arcs_of(form))
        ]
        count = [0, 0]
        return Stream(self._points(nodes, count), lambda: (count[0], count[1]))

    def _points(self, nodes: list[Node], count: list[int]) -> Generator[Array]:
        states: list[Any] = [None] * len(nodes)
        boxes: dict[Hashable, dict[Hashable, Any]] = {node.label: {} for node in nodes}
        while True:
            received, boxes = boxes, {node.label: {} for node in nodes}
            for k, node in enumerate(nodes):
                states[k], mail = self._stepped(states[k], node, received[node.label])
                for to, message in mail.items():
                    boxes[to][node.label] = copy.deepcopy(message)  # nodes share no array
                    count[0] += 1
                    count[1] += NUMBER * _numbers(message)
            yield np.array([self._parameters(state, node) for state, node in zip(states, nodes, strict=True)])

    def _stepped(self, state: Any, node: Node, messages: dict[Hashable, Any]) -> tuple[Any, Mapping[Hashable, Any]]:
        found = self.step(state, node, messages)
        if not isinstance(found, tuple) or len(found) != 2:
            raise MethodError(
                f"{self.name} must return (state, messages), and at the node {node.label!r} returned "
                f"{type(found).__name__}"
            )
        state, mail = found
        if not isinstance(mail, Mapping):
            return state, {} if mail is None else dict.fromkeys(node.neighbours, mail)
        if strangers := [to for to in mail if to not in node.weight]:
            raise MethodError(
                f"{self.name} sends from the node {node.label!r} to {strangers[0]!r}, which is no neighbour of it"
            )
        return state, mail

    def _parameters(self, state: Any, node: Node) -> Array:
        w: Any = state["w"] if isinstance(state, Mapping) else state[0] if isinstance(state, tuple) else state
        w = np.asarray(w, dtype=float)
        if w.shape != (node.d,):
            raise MethodError(
                f"the state of {self.name} must be parameters of shape ({node.d},), a tuple that begins with them or a "
                f"mapping that has them as 'w'; at the node {node.label!r} they have the shape {w.shape}"
            )
        return w


def _numbers(message: Any) -> int:
    """The number of numbers in a message."""
    if isinstance(message, Mapping):
        return sum(map(_numbers, message.values()))
    if isinstance(message, (tuple, list)):
        return sum(map(_numbers, message))
    return int(np.size(message)) if message is not None else 0


# ---- which of them was given -----------------------------------------------------------------------------------------
def doubt_of(algorithm: AbstractAlgorithm) -> str:
    """What is odd about points that are there already, behind their number: that they are one array; else empty."""
    given = algorithm.points if isinstance(algorithm, Iterates) and isinstance(algorithm.points, Sequence) else ()
    points = [each[0] if isinstance(each, tuple) and each else each for each in given]
    where = {(each.ctypes.data, each.strides) if isinstance(each, np.ndarray) else id(each) for each in points}
    said = ", all of them one and the same array; copies tell rounds apart that were written in place: "
    return f"{said}points.append(w.copy())" if len(points) > 1 and len(where) == 1 else ""


def algorithm_of(given: Any) -> AbstractAlgorithm:
    """The algorithm that was given, by what it is; anything else is refused."""
    if isinstance(given, AbstractAlgorithm):
        return given
    if isinstance(given, AbstractIteration):
        return Iteration(given, given.label)
    if isinstance(given, AbstractMethod):
        raise MethodError(
            f"{given.label} has no rounds on this problem that could be audited; judge its answer with "
            "problem.certify(...)"
        )
    if isinstance(given, type) and issubclass(given, AbstractMethod):
        METHOD(given, "the algorithm", MethodError)
    if callable(given):
        return _of_function(given)
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)):
        return Iterates(given)
    raise MethodError(f"an algorithm is {WANTED}; got {given!r}")


def _of_function(given: Callable[..., Any]) -> AbstractAlgorithm:
    """The algorithm of a function, by its arguments: one that must be given, the problem, or three, state, node and
    messages."""
    name = str(getattr(given, "__name__", type(given).__name__))
    try:
        arguments = signature(given).parameters
    except (TypeError, ValueError):
        return FunctionAlgorithm(given, name, takes_start=False, takes_seed=False)
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p.name for p in arguments.values() if p.default is Parameter.empty and p.kind in places]
    needed = [each for each in needed if each not in ("start", "seed")]
    if len(needed) == 3:
        return NodeStep(given, name)
    if len(needed) > 1 or (not needed and not any(p.kind in places for p in arguments.values())):
        raise MethodError(f"an algorithm is {WANTED}; {name} takes ({', '.join(arguments)})")
    every = any(p.kind == Parameter.VAR_KEYWORD for p in arguments.values())
    return FunctionAlgorithm(given, name, every or "start" in arguments, every or "seed" in arguments)

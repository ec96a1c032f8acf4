"""Mixing: how much of its neighbours' parameters each node takes in a gossip, w <- C w with C doubly stochastic."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checks import numbers
from ..errors import MethodError
from ..form import Form
from ..inputs import is_frame
from ..terms import Array, adjoint_of
from .arcs import arcs_of
from .view import LocalView

METROPOLIS = "metropolis"
SAME = 1e-9  # by how much rows may miss the sum 1, and an entry its mirror image
POWERS = (1, 8, 64, 512)  # of the sums that bound a maximum: the last by a factor n^(1/512)


@dataclass(frozen=True)
class Mixing:
    """C = I - K' diag(c) K: whatever the weights c >= 0 of the edges, C is symmetric and its rows sum to 1.

    ``weights`` holds c_e per edge block of the form; nothing for edges to the ground.
    """

    weights: tuple[Array, ...]

    def apply(self, form: Form, w: Array, answers: Array | None = None) -> Array:
        """C w; edges of which not both ends are in the mask ``answers`` (n,) have no weight in this round, so that what
        a node would have taken from the other goes to the diagonal."""
        return w - adjoint_of(form.edges, self.flows(form, w, answers), w.shape)  # w - (I - C) w

    def flows(self, form: Form, w: Array, answers: Array | None = None) -> tuple[Array, ...]:
        """c_e (K w)_e per edge block; 0 on edges to the ground."""
        out: list[Array] = []
        for edge, c in zip(form.edges, self.weights, strict=True):
            if edge.ground:
                out.append(np.zeros((len(edge.tail), form.width(edge))))
                continue
            flow = c[:, None] * edge.difference(w)
            if answers is not None:  # rows of neighbours that did not send may be NaN
                flow = np.where((answers[edge.tail] & answers[edge.head])[:, None], flow, 0.0)
            out.append(flow)
        return tuple(out)

    def outflow(self, form: Form) -> Array:
        """1 - c_ii of each node, (n,)."""
        out = np.zeros(form.n)
        for edge, c in zip(form.edges, self.weights, strict=True):
            if not edge.ground:
                out += np.bincount(edge.tail, c, form.n) + np.bincount(edge.head, c, form.n)
        return out

    def matrix(self, form: Form) -> Array:
        """C, (n, n), of a whole graph."""
        out = np.diag(1.0 - self.outflow(form))
        for edge, c in zip(form.edges, self.weights, strict=True):
            if not edge.ground:
                np.add.at(out, (edge.tail, edge.head), c)
                np.add.at(out, (edge.head, edge.tail), c)
        return out


def spectral_gap(C: Array) -> float:
    """1 - rho, rho the largest modulus of the eigenvalues of C beside the 1 of the consensus (Assumption 1); 1 for one
    node."""
    values = np.linalg.eigvalsh(C)
    return 1.0 if len(values) == 1 else float(1.0 - max(values[-2], -values[0]))


@dataclass(frozen=True, eq=False)
class MixingMatrix:
    """A mixing matrix as a user gave it: ``values`` (n, n), rows and columns by ``labels``, or in node order."""

    labels: tuple[Hashable, ...] | None
    values: Array

    @staticmethod
    def of(value: Any, method: str) -> MixingMatrix | str:
        """The matrix from 'metropolis', an array in node order, a DataFrame, or ``{i: {j: c_ij}}`` (0 where nothing
        is said)."""
        if isinstance(value, MixingMatrix) or (isinstance(value, str) and value == METROPOLIS):
            return value
        try:
            labels, array = _read(value)
        except MethodError as error:
            raise MethodError(f"the mixing of {method}: {error}") from None
        if array.ndim != 2 or len(array) != len(array.T):
            got = f"the shape {array.shape}" if array.ndim == 2 else repr(value)
            raise MethodError(f"the mixing of {method} must be {WANTED}, got {got}")
        return MixingMatrix(labels, array)

    def wrong(self, form: Form, lazy: bool) -> tuple[str, ...]:
        """The conditions that do not hold on the communication graph, as sentences, of Assumption 1 and of what the
        slides ask of C before it: symmetric, non-negative, rows of sum 1, positive exactly on edges (and the
        diagonal), no other eigenvalue of modulus 1."""
        if len(self.values) != form.n:
            return (f"the mixing matrix is of {len(self.values)} nodes, and the problem has {form.n}",)
        nodes = set(form.labels)
        if self.labels is not None and (unknown := [label for label in self.labels if label not in nodes]):
            return (f"the mixing matrix has a row for {unknown[0]!r}, which is not a node",)
        place, names = self._places(np.arange(form.n), tuple(form.labels)), form.labels
        C = self.values[np.ix_(place, place)]
        if not np.isfinite(C).all():
            i, j = np.argwhere(~np.isfinite(C))[0]
            return (f"the mixing matrix is not finite at ({names[i]!r}, {names[j]!r})",)
        arcs, linked, out = arcs_of(form), np.zeros(C.shape, dtype=bool), list[str]()
        linked[arcs.source, arcs.target] = True
        off = ~linked & ~np.eye(form.n, dtype=bool) & (C != 0)
        totals = C.sum(axis=1)
        for found, said in (
            (C < 0, "is negative: {0:.4g} at ({1!r}, {2!r})"),
            (np.abs(C - C.T) > SAME, "is not symmetric: {0:.4g} at ({1!r}, {2!r}), {3:.4g} at ({2!r}, {1!r})"),
            (off, "has {0:.4g} at ({1!r}, {2!r}), which have no edge in the communication graph"),
            (linked & (C == 0), "has 0 at the edge ({1!r}, {2!r}) of the communication graph; leave that edge out"),
        ):
            if found.any():
                i, j = np.argwhere(found)[0]
                out.append("the mixing matrix " + said.format(C[i, j], names[i], names[j], C[j, i]))
        if (np.abs(totals - 1.0) > SAME).any():
            i = int(np.argmax(np.abs(totals - 1.0)))
            out.append(f"the row of {names[i]!r} in the mixing matrix sums to {totals[i]:.10g}, not to 1")
        if not out and not lazy and form.n_components == 1 and spectral_gap(C) < SAME:
            out.append("the mixing matrix has the eigenvalue -1, so that values swing for ever; take lazy=True")
        return tuple(out)

    def between(self, view: LocalView, i: Array, j: Array) -> Array:
        """c_ij of pairs of nodes."""
        place = self._places(view.ids, tuple(view.form.labels))
        return self.values[place[i], place[j]]

    def _places(self, ids: Array, labels: tuple[Hashable, ...]) -> Array:
        """The rows of nodes in the matrix."""
        if self.labels is None:
            return ids
        at = {label: k for k, label in enumerate(self.labels)}
        return np.array([at[label] for label in labels])


def mixing_of(view: LocalView, given: MixingMatrix | str, lazy: bool) -> Mixing:
    """The mixing on the edges of a local view.

    By Metropolis and Hastings c_ij = 1 / (max(d_i, d_j) + 1), d_i the number of neighbours (slides, Figure 2): one
    exchange of a number, recorded as adaptation. ``lazy``: of (C + I)/2, whose eigenvalues are not negative.
    """
    i, j = np.split(view.arcs.source, 2)  # the ends of each pair
    if isinstance(given, str):
        degree = np.bincount(view.arcs.target, minlength=view.form.n).astype(float)
        degree = view.engine.exchange(degree[:, None], parameters=False, purpose="adaptation")[:, 0]
        c = 1.0 / (np.maximum(degree[i], degree[j]) + 1.0)
    else:
        c = given.between(view, i, j)
    pairs = [np.split(toward, 2)[0] for toward in view.toward]  # of each edge between nodes
    times = sum((np.bincount(each, minlength=len(c)) for each in pairs), np.zeros(len(c)))
    c = (0.5 if lazy else 1.0) * c / times  # several edges of a pair share its weight
    return Mixing(tuple(c[each] for each in pairs))


def largest(view: LocalView, values: Array) -> float:
    """A bound of the largest of non-negative values (n,) of the nodes, too large by at most n^(1/512): sums of their
    powers, since max^p <= sum of v_i^p <= n max^p. Each power divides by the bound of the last, against overflow."""
    bound = 1.0
    for p in POWERS:
        total = float(view.engine.reduce(np.where(view.own, values / bound, 0.0)[:, None] ** p)[0])
        if not 0.0 < total < np.inf:
            return total
        bound *= total ** (1.0 / p)
    return bound


WANTED = "'metropolis', a square array, a DataFrame or {i: {j: c_ij}}"
WHAT = "it", WANTED, MethodError


def _read(value: Any) -> tuple[tuple[Hashable, ...] | None, Array]:
    """Labels, where there are some, and entries."""
    if is_frame(value):
        labels = tuple(value.index)
        if sorted(map(repr, labels)) != sorted(map(repr, value.columns)) or len(set(labels)) < len(labels):
            raise MethodError("rows and columns of the DataFrame must have the same labels, each once")
        return labels, numbers(value[list(labels)], *WHAT)
    if isinstance(value, Mapping) and all(isinstance(row, Mapping) for row in value.values()):
        if stray := [j for row in value.values() for j in row if j not in value]:
            raise MethodError(f"the mapping has an entry for {stray[0]!r}, but no row of it")
        return tuple(value), numbers([[row.get(j, 0.0) for j in value] for row in value.values()], *WHAT)
    return None, numbers(value, *WHAT)

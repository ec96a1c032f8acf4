"""The quantities of a problem that an algorithm written by hand needs: gradients, proxes and the incidence of the
graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..base.display import Suggesting
from ..errors import MethodError
from ..form import EdgeBlock, Form, SampleBlock
from ..terms import Array
from ..terms.penalties import AbstractSmoothPenalty, squares
from .gradients import NodeGradients
from .nodeprox import AbstractNodeProx, node_proxes

CALLS = 40  # of a prox that goes on from its last answer, at most, until it moves no more
STILL = 1e-14


class Oracles(Suggesting):
    """Arrays and functions of a problem ``sum_i f_i(w_i) + sum_e c_e phi(w_tail - w_head) + sum_i psi(w_i)``.

    Rows are nodes in the order of ``labels``, latent ones last; edges are those between nodes, of all terms.

    Attributes
    ----------
    labels : tuple of hashables
    n, d : int
    tail, head : array of int, shape (m,)
    weight : array, shape (m,)
        c_e, strength x edge weight; 1 for constraints.
    K : sparse array, shape (m, n)
        ``(K w)_e = w_tail - w_head``.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.labels = form.labels
        self.n, self.d = form.shape
        self._links = form.between
        self._ground = form.to_ground
        self._last: tuple[bytes, tuple[AbstractNodeProx, ...]] = b"", ()  # proxes in the units of the last step

    def __repr__(self) -> str:
        return f"<Oracles of {self.n} nodes x {self.d} coordinates, {len(self.tail)} edges between nodes>"

    # ---- nodes -------------------------------------------------------------------------------------------------------
    @cached_property
    def _gradients(self) -> NodeGradients:
        return NodeGradients(self.form)

    @cached_property
    def _proxes(self) -> tuple[AbstractNodeProx, ...]:
        return node_proxes(self.form)

    def gradient(self, w: Array) -> Array:
        """The gradients of f_i, and of node penalties where these are smooth, (n, d)."""
        return self._gradients.full(w)

    def sampled(self, w: Array, uniform: Array) -> Array:
        """Unbiased estimates of `gradient` from b samples of each node, drawn by numbers in [0, 1), (n, b)."""
        return self._gradients.sampled(w, uniform)

    @cached_property
    def smoothness(self) -> Array:
        """L_i, the Lipschitz constant of row i of `gradient`; inf where there is none, (n,)."""
        return self._gradients.smoothness

    @cached_property
    def convexity(self) -> Array:
        """mu_i, a modulus of strong convexity of what `gradient` is the gradient of, (n,)."""
        return self._gradients.convexity

    @cached_property
    def _ridges(self) -> tuple[Array, Array]:
        """mu and mu a of the node penalties mu_ij/2 (w_ij - a_ij)^2, (n, d) each."""
        mu, pull = np.zeros((self.n, self.d)), np.zeros((self.n, self.d))
        for edge in self._ground:
            columns = edge.columns(self.d)
            Q = squares(edge.penalty, len(columns))
            if Q is not None and not np.triu(Q, 1).any():
                at, share = np.ix_(edge.tail, columns), edge.weight[:, None] * np.diagonal(Q)
                np.add.at(mu, at, share)
                np.add.at(pull, at, share * (0.0 if edge.center is None else edge.center))
        return mu, pull

    def prox(self, v: Array, step: Any) -> Array:
        """argmin over w of f_i(w) + ||w - v_i||^2 / (2 step_i), of the losses with ridges, the node penalties
        `SquaredL2`, without other penalties, (n, d); ``step`` is a number or (n,).

        With t the step and a node penalty mu/2 ||w - a||^2, that of the losses at (v + t mu a) / (1 + t mu) with the
        step t / (1 + t mu), also where mu differs between coordinates, which are then measured in
        (1 + t mu)^(-1/2)."""
        tau, (mu, pull) = np.broadcast_to(np.asarray(step, dtype=float), (self.n,)), self._ridges
        if not mu.any():
            return self._prox(self._proxes, v, tau)
        more = 1.0 + tau[:, None] * mu
        unit, v = more**-0.5, (v + tau[:, None] * pull) / more
        if (unit == unit[:, :1]).all():
            return self._prox(self._proxes, v, tau * unit[:, 0] ** 2)
        key = unit.tobytes()
        if self._last[0] != key:
            measured = (_in_units(block, unit) for block in self.form.at_nodes)  # node i in units of ``unit``_i
            self._last = key, node_proxes(replace(self.form, samples=tuple(measured)))
        return unit * self._prox(self._last[1], v / unit, tau)

    def _prox(self, proxes: tuple[AbstractNodeProx, ...], v: Array, tau: Array) -> Array:
        out = v.copy()
        for prox in proxes:
            i = prox.nodes
            warm, memory = v[i], None
            for _ in range(CALLS):
                w, memory = prox(v[i], tau[i], warm, memory)
                far, warm = np.abs(w - warm).max(initial=0.0), w
                if far <= STILL * np.abs(w).max(initial=0.0):
                    break
            out[i] = warm
        return out

    def node_prox(self, v: Array, step: Any) -> Array:
        """The prox of step_i psi at each row, of the node penalties that `gradient` leaves out, as they are not smooth,
        (n, d); v where there are none. Several are taken one after the other, which is the prox of their sum where they
        act on different features."""
        out, tau = v.copy(), np.broadcast_to(np.asarray(step, dtype=float), (self.n,))
        for edge in self._ground:
            if isinstance(edge.penalty, AbstractSmoothPenalty):
                continue
            i, columns = edge.tail, edge.columns(self.d)
            center = 0.0 if edge.center is None else edge.center
            at = np.ix_(i, columns)
            out[at] = center + edge.penalty.prox(out[at] - center, tau[i] * edge.weight)
        return out

    # ---- edges -------------------------------------------------------------------------------------------------------
    @cached_property
    def tail(self) -> Array:
        return np.concatenate([np.zeros(0, np.intp), *(edge.tail for edge in self._links)])

    @cached_property
    def head(self) -> Array:
        return np.concatenate([np.zeros(0, np.intp), *(edge.head for edge in self._links)])

    @cached_property
    def weight(self) -> Array:
        return np.concatenate([np.zeros(0), *(edge.weight for edge in self._links)])

    @cached_property
    def K(self) -> sp.csr_array:  # noqa: N802  (a matrix)
        rows = [edge.K for edge in self._links]
        return sp.csr_array(sp.vstack(rows, format="csr")) if rows else sp.csr_array((0, self.n))

    def edge_prox(self, z: Array, step: Any) -> Array:
        """The prox of step_e c_e phi at each row, (m, d); ``step`` is a number or (m,)."""
        return self._by_block(z, step, lambda edge, rows, t: edge.penalty.prox(rows, t * edge.weight))

    def dual_prox(self, u: Array, step: Any) -> Array:
        """The prox of step_e (c_e phi)* at each row, (m, d): for a norm the projection onto its dual ball."""
        return self._by_block(u, step, lambda edge, rows, t: edge.penalty.dual_prox(rows, t, edge.weight))

    def edge_gradient(self, z: Array) -> Array:
        """c_e times a subgradient of phi at each row, (m, d)."""
        return self._by_block(z, 1.0, lambda edge, rows, _: edge.weight[:, None] * edge.penalty.subgradient(rows))

    def _by_block(self, rows: Array, step: Any, each: Callable[[EdgeBlock, Array, Array], Array]) -> Array:
        for edge in self._links:
            if edge.features is not None:
                raise MethodError(
                    f"{edge.name} acts on some features only, so that its edges have no rows of {self.d} numbers; "
                    "go through the blocks in problem.form.edges"
                )
        t = np.broadcast_to(np.asarray(step, dtype=float), (len(rows),))
        ends = np.cumsum([len(edge.tail) for edge in self._links])
        parts = zip(self._links, np.split(rows, ends[:-1]), np.split(t, ends[:-1]), strict=True)
        return np.concatenate([each(*part) for part in parts]) if self._links else rows.copy()


def _in_units(block: SampleBlock, unit: Array) -> SampleBlock:
    each = unit.reshape(len(unit), 1 if block.X is None else block.X.shape[1], -1)
    if block.X is None or (each != each[:, :, :1]).any():
        raise MethodError(
            f"{block.name} has no prox beside a node penalty on some coordinates of a predictor alone; "
            "take its gradient"
        )
    X = block.X * each[block.node, :, 0]
    return replace(block, map=replace(cast(Any, block.map), X=X))

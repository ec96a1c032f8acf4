"""The linear system of the repair, (K'CK + X'MX) z = r, by conjugate gradients with a block-Jacobi preconditioner.

Where all coordinates of a flow give way alike, K'CK is a graph Laplacian on the nodes, and no array over the edges is
touched in an iteration. X'MX is one matrix per node, or by Woodbury's identity a thin product where a node has fewer
samples than coordinates. The preconditioner has one block per node: its X_i'M X_i and the sum of the conductances of
its edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...form import DualPoint, EdgeBlock, Form, SampleBlock
from ...oracles import Factors, least_fill, units
from ...terms import ALIKE, Array, Batch, gram, inverses, times
from ...terms.penalties import FlowDomain

MOST = 400  # iterations
LOOKS = 8  # after this share of those that may be made one looks whether they will do
FILLED, LARGEST = 20, 100_000  # entries of a factor, at least, per node, and nodes, up to which one is made
TIE = 1e-12  # of the diagonal: what nodes are tied to the ground by, as potentials are known but for a constant
SMALL = 8  # coordinates up to which a dense matrix per node is cheaper than Woodbury's formula

Map = Callable[[Array], Array]


class System:
    """The system for one set of conductances C, set up once and solved for any residual of conservation.

    C has an array (m, k) or (m, 1) per edge block in the place of flows, and M, shaped like predictors or with a matrix
    for each, in the place of prices.
    """

    def __init__(self, form: Form, C: DualPoint, units: Array | float = 1.0) -> None:
        self.form, self.conductances, self.units = form, C, units
        self._parts: list[tuple[Any, Map]] = []  # a share of the product, and the place that it is of and adds to
        self._inverses: list[tuple[Array | slice, Map]] = []
        self.factor: Map | None = None  # in the place of these
        self.laplacians: list[sp.csr_array] = []  # of the blocks whose flows give way alike in all coordinates
        diagonal = np.zeros(form.shape)
        for block, M in zip(form.blocks, C.parts, strict=True):
            if block.map.noun == "row" and M.any():
                self._parts.append((slice(None), _row_map(block, M)))
                own = np.einsum("rcc->rc", M) if M.ndim == 3 else M.reshape(block.count, -1)
                weights = np.broadcast_to(own, (block.count, block.map.width(form.d))).ravel()
                diagonal += (block.map.flat(form.d).power(2).T @ weights).reshape(form.shape)
        for edge, conductance in zip(form.edges, C.flows, strict=True):
            if edge.map.edges is not None:
                self._add_edges(edge, conductance, diagonal)
        nodes: list[tuple[Batch, Array]] = []
        for block, M in zip(form.samples, C.prices, strict=True):
            if block.map.noun == "row":
                continue
            if block.stacks is None:
                mass = np.zeros(form.shape)
                np.add.at(mass, block.node, M)
                diagonal += mass
                self._parts.append((slice(None), partial(np.multiply, mass)))
            else:
                for batch in block.stacks:
                    each = batch.pad(M)
                    nodes.append((batch, each * batch.mask.reshape(*batch.mask.shape, *[1] * (each.ndim - 2))))
        scale = float(diagonal.max(initial=0.0)) or 1.0
        self._bare = 1.0 / np.where(diagonal > 0.0, diagonal, scale)
        for batch, M in nodes:
            product, inverse = _node_maps(batch.X, M, diagonal[batch.nodes])
            # a slice where they are all nodes in their order: gathers would cost more than the products
            chosen = slice(None) if np.array_equal(batch.nodes, np.arange(form.n)) else batch.nodes
            self._parts.append((chosen, product))
            self._inverses.append((chosen, inverse))

    def _add_edges(self, edge: EdgeBlock, conductance: Array, diagonal: Array) -> None:
        columns = (slice(None), edge.coordinates)
        if conductance.shape[1] == 1 and type(edge.penalty.domain).conduct is FlowDomain.conduct:
            L = sp.csr_array(edge.transposed @ sp.diags_array(conductance[:, 0]) @ edge.K)
            self._parts.append((columns, partial(_times, L)))
            self.laplacians += [L] if edge.features is None else []
        else:
            conduct = partial(edge.penalty.domain.conduct, conductance)
            self._parts.append((columns, lambda z: edge.transposed @ conduct(edge.K @ np.ascontiguousarray(z))))
        diagonal[columns] += abs(edge.transposed) @ conductance

    def currents(self, z: Array) -> DualPoint:
        """(C K z, M X z): the flows and prices that the potentials z drive."""
        return self.form.mapped(lambda block, C: block.conduct(C, z), self.conductances)

    def solve(self, r: Array, tolerance: float, most: int = MOST, promising: bool = False) -> tuple[Array, int]:
        """z with (K'CK + X'MX) z = r to a relative residual of ``tolerance`` in the units of the coordinates, or as far
        as ``most`` iterations come, and the iterations that it took. Where they are to be ``promising`` no more are
        made, and ``most`` is said, once the residual falls too slowly for these to be enough.

        The system is consistent for every residual r of conservation.
        """
        z, r = np.zeros_like(r), r.copy()
        target = tolerance * np.linalg.norm(self.units * r)
        y = self.precondition(r)
        p, ry = y.copy(), float(np.vdot(r, y))
        best, best_norm = z.copy(), np.inf
        iteration, look, last = 0, most // LOOKS if promising else most, (0, float(np.linalg.norm(self.units * r)))
        while iteration < most:
            norm = float(np.linalg.norm(self.units * r))
            if norm < best_norm:
                best[:], best_norm = z, norm
            if norm <= target or not ry > 0.0:
                break
            if iteration > look:
                rate = np.log(last[1] / best_norm) / (iteration - last[0])
                if rate * (most - iteration) < np.log(best_norm / target):
                    return best, most
                look, last = 2 * look, (iteration, best_norm)
            Ap = self._apply(p)
            curvature = float(np.vdot(p, Ap))
            if not curvature > 0.0:
                break
            alpha = ry / curvature
            z += alpha * p
            r -= alpha * Ap
            y = self.precondition(r)
            ry, previous = float(np.vdot(r, y)), ry
            p *= ry / previous
            p += y
            iteration += 1
        return best, iteration

    def _apply(self, z: Array) -> Array:
        out = np.zeros_like(z)
        for place, product in self._parts:
            out[place] += product(z[place])
        return out

    def precondition(self, r: Array) -> Array:
        if self.factor is not None:
            return self.factor(r)
        y = self._bare * r
        for chosen, inverse in self._inverses:
            y[chosen] = inverse(r[chosen])
        return y


def edge_system(form: Form, C: tuple[Array, ...], kept: dict[int, Factors] | None = None) -> System:
    """The system where nothing but edges conducts: potentials drive flows alone. Preconditioned by its factor where one
    is `factored`; of those that are ``kept`` the order is taken over."""
    system = System(replace(form, samples=()), DualPoint(C, ()))
    if len(system.laplacians) == len(form.edges) and factored(form):
        system.factor = factor_of(sum(system.laplacians[1:], system.laplacians[0]), kept)
    return system


def factored(form: Form) -> bool:
    """True where few nodes part the graph, as on maps and images: factors stay small there, and it takes currents many
    iterations to find their way across."""
    return form.n <= LARGEST and form.once("parted", None, lambda: least_fill(units(form)[0]) <= FILLED * form.n)


def factor_of(L: sp.csr_array, kept: dict[int, Factors] | None = None) -> Map:
    """r -> (L + a little)^-1 r, each column by itself."""
    diagonal = L.diagonal()
    lift = np.where(diagonal > 0.0, TIE * diagonal, 1.0)
    upper = sp.csc_array(sp.triu(L + sp.diags_array(lift)))
    pattern = hash((upper.indices.tobytes(), upper.indptr.tobytes()))
    factors = ({} if kept is None else kept).setdefault(pattern, Factors(upper.indices, upper.indptr, low=True))
    solve = factors(upper.data)
    return lambda r: np.stack([solve(np.ascontiguousarray(column)) for column in r.T], axis=1)


def _times(L: sp.csr_array, z: Array) -> Array:
    return L @ np.ascontiguousarray(z)


def _row_map(block: EdgeBlock | SampleBlock, C: Array) -> Map:
    """K'CK for rows of any kind."""

    def product(z: Array) -> Array:
        block.add_adjoint(block.conduct(C, z), out := np.zeros(z.shape))
        return out

    return product


def _node_maps(X: Array, M: Array, D: Array) -> tuple[Map, Map]:
    """v -> X'MX v and v -> (diag(D) + X'MX)^-1 v for a stack of nodes.

    D (g, d) is lifted a little where the inverse would be singular.
    """
    if M.ndim == 4:  # a matrix per sample couples its k predictors
        return _dense_maps(gram(X, M), D)
    _, size, d = X.shape
    root = np.sqrt(M)[:, :, None] * X
    turned = root.transpose(0, 2, 1)
    if size >= d or d <= SMALL:
        return _dense_maps(np.matmul(turned, root), D)
    # Woodbury's formula divides by D, and more of a lift keeps its cancellation harmless
    lifted = _lifted(np.einsum("gmd,gmd->gd", root, root), D, 1e-6)
    thin = turned / lifted[:, :, None]
    S = np.matmul(root, thin)
    S[:, np.arange(size), np.arange(size)] += 1.0
    inner = np.linalg.inv(S)

    def woodbury(v: Array) -> Array:
        scaled = v / lifted
        return scaled - times(thin, times(inner, times(root, scaled)))

    return (lambda v: times(turned, times(root, v))), woodbury


def _lifted(own: Array, D: Array, share: float) -> Array:
    """D (g, d), at least a share of the whole diagonal own + D of its coordinate, in whatever unit that is.

    A coordinate that a node knows nothing of takes the node's largest.
    """
    whole = own + D
    most = whole.max(axis=1, keepdims=True)
    whole = np.where(whole > 0.0, whole, np.where(most > 0.0, most, 1.0))
    alike = most <= ALIKE * whole.min(axis=1, keepdims=True)
    return np.maximum(D, share * np.where(alike, whole.mean(axis=1, keepdims=True), whole))


def _dense_maps(H: Array, D: Array) -> tuple[Map, Map]:
    d = np.arange(H.shape[1])
    lifted = H.copy()
    lifted[:, d, d] += _lifted(H[:, d, d], D, 1e-10)
    inverse = inverses(lifted)
    return (lambda v: times(H, v)), (lambda v: times(inverse, v))

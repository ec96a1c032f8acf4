"""The model that a limit balances: the optimality conditions with one unknown factor, read off exactly.

At the optimum of sum_i f_i + sum_e c_e phi(w_tail - w_head) the gradients of the losses and the forces of the edges add
up to 0 at every node. The force of a split edge is known; that of a fused one is free (for an l1 norm, by coordinate).
A point that is no optimum may still balance a model with one factor changed: the strength, the losses, the weight of
one edge. Each such family is a least-squares problem with one unknown and the free flows; the family that leaves next
to nothing, and much less than any other, is what the algorithm has minimised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.declaring import declared, needs_no_options
from ..certificate import lengths
from ..form import EdgeBlock, Form
from ..oracles import NodeGradients
from ..terms import Array, adjoint_of
from ..terms.penalties import AbstractOneSided, AbstractPenalty, AbstractSmoothPenalty, is_equality
from .instances import degrees, with_latent

# ---- names of mistakes: those that no limit can tell apart have one name ---------------------------------------------
SAME = 1e-3  # by how much a factor may miss a round number
ONE = re.compile(r"the losses of the node |the edge \(")  # of names of one place
DEGREE = "nodes weighted by their degree"
ROUND = (2.0, 3.0, 4.0, 5.0, 8.0, 10.0)


def number(t: float) -> str:
    """A factor as it is said: 2, 1/2, or so many digits."""
    for q in ROUND:
        for value, text in ((q, f"{q:g}"), (1.0 / q, f"1/{q:g}")):
            if abs(abs(t) - value) <= SAME * value:
                return text if t > 0 else f"-{text}"
    return f"{t:.7g}" if abs(abs(t) - 1.0) < 0.01 else f"{t:.4g}"


def is_one(t: float) -> bool:
    """True of a factor of 1."""
    return abs(t - 1.0) <= SAME


def by_factor(kind: str, name: str, t: float) -> str:
    """The mistake that a family with the factor t is."""
    if kind == "model":
        return name
    one = abs(abs(t) - 1.0) <= SAME
    if kind in ("strength", "losses"):
        return _of_strength(kind, name, t, one)
    if kind in ("edge", "end"):
        if abs(t) <= SAME:
            return f"missing edge: {name} left out"
        opposite = f"sign on one edge: {name} with the opposite sign"
        return opposite if one and t < 0 else f"{name} x {number(t)}"
    if kind == "node":
        return f"{name} left out" if abs(t) <= SAME else f"{name} x {number(t)}"
    times = "" if one and t > 0 else f", x {number(t)}"
    step = f" (as a prox step of {number(t)} for 1 / degree does)" if name == DEGREE else ""
    return f"penalty {name}{times}" if kind == "penalty" else f"{name}{times}{step}"


def _of_strength(kind: str, name: str, t: float, one: bool) -> str:
    if one and t < 0:
        return f"sign: {name} with the opposite sign"
    if abs(t) <= SAME:
        return f"{name} left out"
    losses = 1.0 / t if kind == "strength" else t
    other = f"the losses x {number(losses)}" if kind == "strength" else f"the penalties x {number(1.0 / t)}"
    own = f", of the penalty's x {number(t)}" * (kind == "strength")
    prox = f", or the step of the losses' prox x {number(losses)}{own}" if t > 0 else ""
    return f"factor {number(t)} in the strength: {name} x {number(t)} ({other}{prox})"


def roundness(t: float) -> int:
    """0 for the factors of the commonest mistakes, 1 for other round ones, 2 for the rest."""
    if min(abs(t), abs(t + 1.0)) <= SAME:
        return 0
    return 1 if any(abs(abs(t) - v) <= SAME * v for q in ROUND for v in (q, 1.0 / q)) else 2


# ---- families of models with one unknown factor ----------------------------------------------------------------------
ACCEPTED = 1e-4  # the residual of a family, relative to the forces, that counts as balance
APART = 30.0  # by so much the next family must leave more
NEARLY = 1e-4  # of the largest difference of a parameter: one that may be 0
LITTLE = 1e-3  # of the length of a parameter, that its largest difference is taken for at least
KINK = 0.05  # of the typical force, by which a subgradient jumps where there is a kink
UNSEEN = 1e-6  # of a force: what is left of it beside the free flows says nothing
LARGEST = 2400  # parameters, beyond which the least-squares problems take too long
MIXING = "asymmetric mixing: "
PARALLEL = 1e-8  # by which the cosine of two lines may miss 1
LEAST = 1e-12  # of a residual, which rounding leaves
# of kinds that no limit tells apart, by how common they are: 1 for others
RANK = {"model": 0, "node": 2, "end": 3, "penalty": 4}
COMMON = {"edge": 1, "node": 2, "end": 3, "penalty": 4}  # of kinds that this limit alone does not tell apart
TRIES = 4  # pairs of points on both sides of a difference, at which its subgradients are compared


@dataclass(frozen=True)
class Family:
    """A model with one factor t: ``known + t unknown + free flows = 0``.

    Attributes
    ----------
    name : str
        What has the factor, in words.
    factor, residual : float
        The best t, and what it leaves, relative to what is known.
    line : array (n d,)
        The direction in which the balance changes with t, beside the free flows.
    model : bool
        Whether t = 1 is the model itself. Such families with the same line are one: no limit tells them apart.
    kind : str
        The kind of mistake that another factor is, see `words`.
    """

    name: str
    factor: float
    residual: float
    line: Array = field(repr=False)
    model: bool
    kind: str

    def same(self, other: Family) -> bool:
        """True where no limit tells the two apart."""
        parallel = abs(float(self.line @ other.line)) > 1.0 - PARALLEL
        return self.model and other.model and (parallel or (is_one(self.factor) and is_one(other.factor)))

    @property
    def likely(self) -> bool:
        """True of a factor that a mistake has: 1 where something is taken for something else, a round number
        elsewhere."""
        instead = self.kind in ("nodes", "weights", "penalty")
        return is_one(self.factor) if instead else roundness(self.factor) < 2

    @property
    def sentence(self) -> str:
        return by_factor(self.kind, self.name, self.factor)


def balanced(form: Form, w: Array) -> list[Family]:
    """The families at the parameters (n_observed, d) of a limit, that with the least residual first."""
    if form.n * form.d > LARGEST:
        return []
    return sorted(_families(_Forces(form, with_latent(form, w))), key=lambda each: each.residual)


def accepted(families: list[Family]) -> tuple[Family, ...]:
    """The family that balances, and behind it those that this limit cannot tell from it; empty where none does.

    Where several balance that other limits would tell apart (few clusters leave few forces to be read), those whose
    factor is what a mistake has, and not any number, are first; empty where there is no such one.
    """
    if not families or families[0].residual > ACCEPTED:
        return ()
    first, bound = families[0], max(APART * max(families[0].residual, LEAST), LEAST)
    tied = [each for each in families if each.residual <= min(bound, ACCEPTED) or (each is first)]
    alike = [each for each in families if each.residual <= ACCEPTED and first.same(each)]
    if any(not first.same(each) for each in tied if each is not first):
        likely = [each for each in tied if each.likely]
        if not likely or any(is_one(each.factor) and each.model for each in tied):
            return ()
        likely.sort(key=lambda each: (COMMON.get(each.kind, 0), roundness(each.factor)))
        return (*likely, *(each for each in tied if not each.likely))
    ranked = sorted(alike or [first], key=lambda each: each.kind == "edge")  # one edge is less common than all
    return tuple(sorted(ranked, key=lambda each: (RANK.get(each.kind, 1), roundness(each.factor))))


class _Forces:
    """Gradients, the forces of the edges, and the span of the flows that are free."""

    def __init__(self, form: Form, w: Array) -> None:
        self.form, self.w = form, w
        self.unit, self.far = lengths(form)  # of parameters, and of their differences: forces are measured in 1 / unit
        gradient = sum((b.adjoint(b.prices(w), form.shape) for b in form.samples), np.zeros(form.shape))
        self.gradient = gradient * self.unit
        self.parts = [self.force(edge, edge.penalty) for edge in form.edges]
        self.basis = self.orthonormal([free for _, free in self.parts])

    def force(self, edge: EdgeBlock, penalty: AbstractPenalty) -> tuple[Array, Array]:
        """Subgradients at weight 1 (m, k), 0 where they are free, and where they are, (m, k) bool."""
        z = edge.difference(self.w)
        if is_equality(penalty, z.shape[1]):
            return np.zeros(z.shape), np.ones(z.shape, dtype=bool)
        if isinstance(penalty, AbstractSmoothPenalty):
            return penalty.gradient(z), np.zeros(z.shape, dtype=bool)
        far = self.far[edge.coordinates]
        rng, near = np.random.default_rng(0), NEARLY * np.clip(np.abs(z).max(axis=0), LITTLE * far, far)
        moves = [near * rng.uniform(-1.0, 1.0, z.shape) for _ in range(TRIES)]
        around = [penalty.subgradient(z + each) for move in moves for each in (move, -move)]
        jumps = np.ptp(np.array(around), axis=0)
        small = np.abs(z) <= near
        typical = max((float(np.sqrt(np.mean(np.array(around) ** 2)))), 1e-300)
        free = (jumps > KINK * typical) | small.all(axis=1, keepdims=True)
        return np.where(free, 0.0, penalty.subgradient(z)), free

    def orthonormal(self, masks: list[Array]) -> Array:
        """An orthonormal basis of what free flows can do at the nodes, (n d, r)."""
        form, columns = self.form, list[Array]()
        for edge, free in zip(form.edges, masks, strict=True):
            chosen = np.flatnonzero(free.ravel())
            if len(chosen):
                columns.append(edge.flat(form.d)[chosen].toarray().T * np.tile(self.unit, form.n)[:, None])
        if not columns:
            return np.zeros((form.n * form.d, 0))
        u, s, _ = np.linalg.svd(np.hstack(columns), full_matrices=False)
        return u[:, s > 1e-10 * s.max()]

    def at_nodes(self, edge: EdgeBlock, flow: Array) -> Array:
        """K' flow, (n, d)."""
        return adjoint_of((edge,), (flow,), self.form.shape) * self.unit

    def total(self, skip: int | None = None) -> Array:
        """The forces of all edges at their weights, but for those of a block, (n, d)."""
        pairs = enumerate(zip(self.form.edges, self.parts, strict=True))
        forces = (self.at_nodes(edge, edge.weight[:, None] * g) for k, (edge, (g, _)) in pairs if k != skip)
        return sum(forces, np.zeros(self.form.shape))

    def fit(
        self, known: Array, unknown: Array, basis: Array | None = None, alone: float | None = 1.0
    ) -> tuple[float, float, Array] | None:
        """The best factor, what it leaves and the line; None where nothing of the unknown is seen beside the free
        flows. Where the rest is 0 the factor is ``alone``: 1 if the unknown must balance by itself, 0 where the rest
        balances without it, None where nothing can be said then."""
        basis = self.basis if basis is None else basis
        a, b = (v.ravel() - basis @ (basis.T @ v.ravel()) for v in (known, unknown))
        size = max(float(np.linalg.norm(known)), float(np.linalg.norm(self.gradient)), 1e-300)
        far = float(np.linalg.norm(b))
        if np.linalg.norm(known) <= UNSEEN * float(np.linalg.norm(self.gradient)):
            if alone is None or (alone == 0.0 and far <= UNSEEN * size):  # what is nothing may have any factor
                return None
            left = float(np.linalg.norm(a + alone * b))
            return alone, left / max(float(np.linalg.norm(unknown)), size), b / max(far, 1e-300)
        if far <= UNSEEN * max(float(np.linalg.norm(unknown)), size * UNSEEN):
            return None
        t = -float(a @ b) / far**2
        return t, float(np.linalg.norm(a + t * b)) / size, b / far

    def family(self, name: str, kind: str, known: Array, unknown: Array, model: bool, **how: Any) -> Iterator[Family]:
        """The family of that name, where `fit` finds a factor."""
        if (found := self.fit(known, unknown, **how)) is not None:
            yield Family(name, *found, model, kind)


def _families(forces: _Forces) -> Iterator[Family]:
    form, total = forces.form, forces.total()

    yield from forces.family("the model as it is", "model", 0.0 * total, forces.gradient + total, True)
    strengths = sum(not is_equality(edge.penalty, form.width(edge)) for edge in form.edges)
    if strengths > 1 or not form.edges:  # of one, its factor is that of the losses upside down
        yield from forces.family("the losses", "losses", total, forces.gradient, True)
    smooth = 0.0 * total  # what smooth penalties on nodes pull
    for edge, (g, _) in zip(form.edges, forces.parts, strict=True):
        if edge.ground and isinstance(edge.penalty, AbstractSmoothPenalty):
            smooth = smooth + forces.at_nodes(edge, edge.weight[:, None] * g)
    for name, a in node_factors(form).items():
        own, even = a[:, None] * (forces.gradient + smooth), bool(np.ptp(a) == 0.0)
        found = list(forces.family(name, "nodes", total - smooth, own, even))
        if not even or (a[0] != 1.0 and found and is_one(found[0].factor)):
            yield from found
    yield from _single_nodes(forces, total, smooth)
    for k, (edge, (g, free)) in enumerate(zip(form.edges, forces.parts, strict=True)):
        if free.all():
            continue
        rest, name = forces.gradient + forces.total(skip=k), edge.name
        own = forces.at_nodes(edge, edge.weight[:, None] * g)
        yield from forces.family(name, "strength", rest, own, True, alone=0.0)
        if not edge.ground:
            for word, power in (("forgotten", 0.0), ("squared", 2.0)):
                if np.ptp(edge.base_weight) > 0.0:
                    weight = float(edge.strength) * edge.base_weight**power
                    flow = forces.at_nodes(edge, weight[:, None] * g)
                    yield from forces.family(f"the edge weights {word}", "weights", rest, flow, False)
            yield from _single_edges(forces, edge, g, free, total)
            yield from _other_penalties(forces, k, rest)


def node_factors(form: Form) -> dict[str, Array]:
    """The factors by which the losses of nodes may have been weighted, (n,) each, by the name of the mistake."""
    counts = np.maximum(NodeGradients(form).counts, 1.0)
    links = [edge for edge in form.edges if not edge.ground]
    degree = np.maximum(degrees(form), 1.0)
    mixed = any(is_equality(edge.penalty, form.width(edge)) for edge in links)
    why = MIXING if mixed else ""
    found = {
        "sum for mean: the sum over samples for their mean": counts,
        "mean for sum: the mean over samples for their sum": 1.0 / counts,
        f"{why}{DEGREE}": degree,
        f"{why}nodes weighted by 1 / degree": 1.0 / degree,
        f"{why}nodes weighted by degree + 1": degree + 1.0,
        f"{why}nodes weighted by 1 / (degree + 1)": 1.0 / (degree + 1.0),
    }
    return found if links else {name: a for name, a in found.items() if "degree" not in name}


def _single_nodes(forces: _Forces, total: Array, smooth: Array) -> Iterator[Family]:
    """The losses of one node with a factor, without and with its own smooth penalty."""
    gradient, rest = forces.gradient, forces.gradient + total
    held = degrees(forces.form) > 0
    for of in (gradient, gradient + smooth) if smooth.any() else (gradient,):
        for i in np.flatnonzero(gradient.any(axis=1)).tolist():
            own = np.zeros(gradient.shape)
            own[i] = of[i]
            alone = 0.0 if held[i] or not forces.w[i].any() else None  # what nothing holds may be anywhere
            name = f"the losses of the node {forces.form.labels[i]!r}"
            yield from forces.family(name, "node", rest - own, own, True, alone=alone)


def _single_edges(forces: _Forces, edge: EdgeBlock, g: Array, free: Array, total: Array) -> Iterator[Family]:
    """One edge with a factor, and one of its two ends alone."""
    labels, K = forces.form.labels, edge.K.tocsr()
    for e in np.flatnonzero(~free.all(axis=1)).tolist():
        flow = np.zeros(g.shape)
        flow[e] = edge.weight[e] * g[e]
        own = forces.at_nodes(edge, flow)
        name = f"the edge ({labels[edge.tail[e]]!r}, {labels[edge.head[e]]!r})"
        rest = forces.gradient + total
        yield from forces.family(name, "edge", rest - own, own, True, alone=0.0)
        for i in K[[e]].indices.tolist():
            end = np.zeros(own.shape)
            end[i] = own[i]
            yield from forces.family(f"{name} at its end {labels[i]!r}", "end", rest - end, end, True, alone=0.0)


def _other_penalties(forces: _Forces, k: int, rest: Array) -> Iterator[Family]:
    """Another penalty of the library in place of the edges' own."""
    edge, own = forces.form.edges[k], forces.parts[k][1]
    if is_equality(edge.penalty, forces.form.width(edge)):
        return
    for name, penalty in other_penalties(edge):
        g, free = forces.force(edge, penalty)
        masks = [free if j == k else part[1] for j, part in enumerate(forces.parts)]
        flow = forces.at_nodes(edge, edge.weight[:, None] * g)
        if not free.all():
            said, basis = f"{name} for {edge.penalty.called()}", forces.orthonormal(masks)
            yield from forces.family(said, "penalty", rest, flow, bool((free == own).all()), basis=basis)


def plain_penalties() -> list[tuple[str, AbstractPenalty]]:
    """The penalties of the library that need no parameter, by name."""
    kinds: dict[str, Any] = declared(AbstractPenalty, users=False)
    return [(name, kind()) for name, kind in kinds.items() if needs_no_options(kind)]


def other_penalties(edge: EdgeBlock) -> Iterator[tuple[str, AbstractPenalty]]:
    """The penalties of the library that need no parameter and may stand between nodes in place of a block's own."""
    for name, penalty in plain_penalties():
        if isinstance(penalty, AbstractOneSided) or isinstance(edge.penalty, type(penalty)):
            continue
        if isinstance(penalty, AbstractSmoothPenalty) or penalty.domain.gauge(np.full((1, 2), 1e9))[0] != 0.0:
            yield name, penalty

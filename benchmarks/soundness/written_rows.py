"""Models written with ``gr.w``: bounds of methods, judged in exact arithmetic at points of a naive CVXPY model.

One to three penalties on rows of every kind (across and along, of any order, maps, groups, offsets, weights) and of
every class, constraints too, beside losses, total variation and latent nodes; often losses of such rows, and second
losses at some nodes. The judge takes K, b and c as they are stored, and the optimum of CVXPY drawn to a point well
inside all constraints until they hold exactly. What is said of rows that hold is judged at the points of the methods,
by the margin that comes with it.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import cvxpy as cp
import networkx as nx
import numpy as np

import graphreg as gr
from graphreg.certificate.edges.dual_region import rounding
from graphreg.certificate.edges.fusion import separate
from graphreg.datasets.plain import Array, PlainProblem, PlainSamples
from graphreg.terms.penalties import AbstractSmoothPenalty

from .exact import Bounds, ExactEdge, above, below, exact, excess, penalty
from .families import LOSSES
from .judged import raised
from .reals import approximately, dot, rational, rationals
from .reference import loss_of

METHODS: dict[str, Any] = {
    "auto": gr.Auto,
    "exact": gr.Exact,
    "primal-dual": gr.PrimalDual,
    "interior-point": gr.InteriorPoint,
}
TRAITS = ("few samples", "dependent columns", "all categories", "many nodes")
SMOOTH = ("L1", "L2", "LInf", "SquaredL2", "HuberNorm")
CONSTRAINTS = ("NonNegative", "Box", "Ball")
SECONDS = 4.0  # of a method
GAP = 1e-6
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
PULLS = (0.0, *(10.0**k for k in range(-15, 0)))  # towards a point inside


@dataclass(frozen=True)
class Written:
    """A model, its samples, and a point well inside all constraints."""

    problem: gr.Problem
    parts: tuple[PlainSamples, ...]
    beside: tuple[PlainSamples, ...]  # losses of rows: samples of one node, whose parameters are all of w
    inner: Array  # (nodes of the form, d)
    what: list[str]


@dataclass
class Row:
    """One problem: what is in it, the statuses by method, and all that is false or was raised."""

    seed: int
    what: list[str]
    answers: list[dict[str, Any]] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


# ---- what is drawn ---------------------------------------------------------------------------------------------------
def rows_of(rng: np.random.Generator, n: int, d: int, signed: bool) -> tuple[str, Any]:
    """Rows of gr.w of one kind or another; with a sign where the penalty asks for it."""
    graph = nx.gnm_random_graph(n, 2 * n, seed=int(rng.integers(1 << 30)))
    graph.add_edges_from((i, (i + 1) % n) for i in list(nx.isolates(graph)))  # whose rows would be 0
    arrows = nx.DiGraph((min(e), max(e)) for e in graph.edges)
    path, order = rng.permutation(n).tolist(), int(rng.integers(1, 4))
    kinds = {
        "across": lambda: gr.w.across(arrows if signed or order == 1 else graph, 1 if signed else order),
        "Laplacian": lambda: gr.w.across(graph, 2),
        "along": lambda: gr.w.along(path, order),
        "at times": lambda: gr.w.along(path, 2, at=np.cumsum(10.0 ** rng.uniform(-1, 1, n))),
        "nodes": lambda: gr.w.at(path[: n // 2 + 1]),
        "map": lambda: gr.w.at(path[0]) - gr.w.at(path[1:4]) @ rng.standard_normal((d, d)),
        "mixed": lambda: rng.standard_normal((n // 2 + 1, n)) @ gr.w,
        "within": lambda: gr.w @ rng.standard_normal((d, d + 1)),
        "groups": lambda: gr.w.across(arrows).grouped(lambda arrow: arrow[0]),
    }
    name = str(rng.choice(list(kinds)))
    return name, kinds[name]()


def _design(rng: np.random.Generator, d: int, traits: list[str]) -> Array:
    """The features of the samples of a node."""
    X = rng.standard_normal((d * ("few samples" not in traits) + int(rng.integers(1, 4)), d))
    if d > 1 and "dependent columns" in traits:
        X[:, -1] = X[:, 0]
    if d > 2 and "all categories" in traits:
        X[:, :2] = rng.integers(0, 2, len(X))[:, None] == (0, 1)
        X[:, 2] = 1.0
    return X


def _samples(rng: np.random.Generator, family: str, size: float, inner: Array, traits: list[str]) -> list[PlainSamples]:
    """The samples of most nodes."""
    n, d = inner.shape
    parts = list[PlainSamples]()
    for i in range(n):
        if i and rng.random() < 0.2:
            continue
        X = _design(rng, d, traits)
        y = X @ inner[i] + size * rng.standard_normal(len(X))
        y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0) if family == "logistic" else y
        parts.append(PlainSamples(i, family, X, y, 10.0 ** rng.uniform(-1, 1, len(X)), np.zeros(len(X)), size))
    return parts


def written(seed: int) -> Written:
    """The model of a seed."""
    rng = np.random.default_rng([seed, 31])
    n, d = int(rng.integers(4, 15)), int(rng.integers(1, 4))
    traits = [trait for trait in TRAITS if np.random.default_rng([seed, 32, len(trait)]).random() < 0.25]
    n = 3 * n if "many nodes" in traits else n
    family = str(rng.choice(["squared", "squared", "huber", "quantile", "logistic"]))
    size = 1.0 if family == "logistic" else float(10.0 ** rng.choice([0.0, 0.0, 4.0, -6.0]))
    inner = size * rng.standard_normal((n, d))
    parts = _samples(rng, family, size, inner, traits)
    X, y, scale = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "scale"))
    data = gr.NodeData.from_arrays(X, y, [part.node for part in parts for _ in part.y], weights=scale)
    more = {"delta": size} if family == "huber" else {"tau": 0.5} if family == "quantile" else {}
    model: Any = LOSSES[family](data, scale="sum", **more) + gr.TotalVariation(
        nx.empty_graph(n), gr.L1()
    )  # whose nodes come first
    space, what = gr.Problem(model).form.space, [family, *traits]
    if rng.random() < 0.3:
        model, what = model + 0.1 * gr.TotalVariation(nx.path_graph(n), gr.L1()), [*what, "total variation"]
    if rng.random() < 0.2:
        model, what = model + gr.Hierarchy({i: i % 2 for i in range(n)}, weights=(0.3, 0.1)), [*what, "hierarchy"]
    for _ in range(int(rng.integers(0, 3))):
        name, loss = _loss(rng, space, inner, size, (X, [part.node for part in parts for _ in part.y]))
        model, what = model + loss, [*what, name]
    for _ in range(int(rng.integers(1, 4))):
        kind = str(rng.choice(CONSTRAINTS if rng.random() < 0.3 else SMOOTH))
        name, rows = rows_of(rng, n, d, kind in CONSTRAINTS)
        if kind in CONSTRAINTS and name == "groups":
            kind = "Ball"  # of groups of different sizes, which take no offsets
        what.append(f"{kind} of {name}")
        model = model + _term(rng, kind, name, rows, space, inner, size)
    problem = gr.Problem(model)
    middle = np.zeros(problem.form.shape)
    middle[:n] = inner
    block: Any = problem.form.samples[0]
    place = np.concatenate([np.full(len(part.y), part.node) for part in parts])
    pairs = (block.X, X), (block.y, y), (block.scale, scale), (block.node, place)
    if not all(np.array_equal(a, b) for a, b in pairs):
        raise AssertionError(f"seed {seed}: samples are stored otherwise")
    beside = tuple(map(_as_one_node, problem.form.beside))
    return Written(problem, tuple(parts), beside, middle, what)


def _loss(rng: np.random.Generator, space: Any, inner: Array, size: float, data: tuple[Array, list[int]]) -> Any:
    """A loss of rows, or a second one of some samples; and what it is."""
    two = ("logistic", "hinge", "squared hinge") if size == 1.0 else ()
    family = str(rng.choice(["squared", "squared", "huber", "quantile", *two]))
    more = {"delta": size} if family == "huber" else {"tau": 0.3} if family == "quantile" else {}
    kind: Any = LOSSES[family]
    weigh = rng.random() < 0.5
    if rng.random() < 0.3:
        X, node = data
        some = rng.permutation(len(X))[: max(len(X) // 2, 1)]
        y = _targets(rng, family, (X[some] * inner[np.array(node)[some]]).sum(axis=1), size)
        weights = 10.0 ** rng.uniform(-3, 3, len(some)) if weigh else None
        again = gr.NodeData.from_arrays(X[some], y, [node[r] for r in some], weights=weights)
        return f"second {family}", kind(again, scale="sum", **more)
    name, rows = rows_of(rng, len(inner), inner.shape[1], signed=True)
    if name == "groups":
        name, rows = "nodes", gr.w.at([0, 1, 0])
    if name in ("nodes", "along", "mixed") and rng.random() < 0.5:
        rows = rows - size * rng.standard_normal((1, inner.shape[1]))
    (made,) = rows.each(space)
    weights = 10.0 ** rng.uniform(-3, 3, made.shape[0]) if weigh else None
    x = (made.K @ inner.ravel()).reshape(made.shape) - made.b
    return f"{family} of {name}", kind(rows, _targets(rng, family, x, size), weights=weights, **more)


def _targets(rng: np.random.Generator, family: str, x: Array, size: float) -> Array:
    if family in ("logistic", "hinge", "squared hinge"):
        return np.where(rng.random(x.shape) < 0.5, 1.0, -1.0)
    return x + size * rng.standard_normal(x.shape)


def _as_one_node(block: Any) -> PlainSamples:
    """The samples of a block as it is stored."""
    (family,) = [name for name, kind in LOSSES.items() if kind is type(block.loss)]
    more: Any = {name: float(getattr(block.loss, name)) for name in ("delta", "tau") if hasattr(block.loss, name)}
    return PlainSamples(0, family, block.A.toarray(), block.y, block.scale, block.offset, **more)


def _term(rng: np.random.Generator, kind: str, name: str, rows: Any, space: Any, inner: Array, size: float) -> Any:
    """A penalty on the rows; a constraint so that ``inner`` lies well inside."""
    radius = size * float(10.0 ** rng.uniform(-2, 0))
    each = rows.each(space)
    values = [(made.K @ inner.ravel()).reshape(made.shape) - made.b for made in each]
    if kind not in CONSTRAINTS:
        if name in ("nodes", "along", "mixed") and rng.random() < 0.5:
            rows = rows - size * rng.standard_normal((1, inner.shape[1]))
        if len(each) == 1 and rng.random() < 0.3:
            rows = rows.weighted(10.0 ** rng.uniform(-3, 3, each[0].shape[0]))
        phi = gr.HuberNorm(radius) if kind == "HuberNorm" else getattr(gr, kind)()
        return float(10.0 ** rng.uniform(-2, 1)) * (1.0 if kind == "SquaredL2" else size) * phi(rows)
    if name == "groups":
        return gr.Ball(1.5 * max(float(np.linalg.norm(v, axis=1).max()) for v in values) + radius)(rows)
    (v,) = values
    depth = rng.uniform(0.1, 1.0, v.shape) * radius
    if kind == "NonNegative":
        return gr.NonNegative()(rows - (v - depth))
    near = (depth - 0.55 * radius) / np.sqrt(v.shape[1])
    return (gr.Box(-radius, radius) if kind == "Box" else gr.Ball(radius))(rows - (v - near))


# ---- the judge -------------------------------------------------------------------------------------------------------
class Judge:
    """P in exact arithmetic, of samples as they were drawn and rows as they are stored."""

    def __init__(self, drawn: Written) -> None:
        form = drawn.problem.form
        d, n = form.d, form.n
        self.drawn, self.shape = drawn, form.shape
        self.samples = exact(PlainProblem(tuple(range(n)), d, drawn.parts, (), np.zeros(d), np.ones(d)))
        self.beside = exact(PlainProblem((0,), n * d, drawn.beside, (), np.zeros(n * d), np.ones(n * d)))
        self.rows = [row for edge in form.edges for row in self._rows(edge, d)]

    def _rows(self, edge: Any, d: int) -> list[tuple[ExactEdge, list[list[tuple[int, Any]]]]]:
        K, phi = edge.flat(d), edge.penalty
        m, kind = edge.count, type(phi).__name__
        k = K.shape[0] // max(m, 1)
        center = np.zeros((m, k)) if edge.center is None else edge.center
        if kind == "Box":
            sides = (np.broadcast_to(side, (k,)) for side in (phi.low, phi.high))
            parameter: Any = [[None if np.isinf(v) else rational(float(v)) for v in side] for side in sides]
        else:
            given = {"HuberNorm": "delta", "Ball": "radius"}.get(kind)
            parameter = None if given is None else rational(float(getattr(phi, given)))
        weight = np.ones(m) if kind in CONSTRAINTS else edge.weight
        lines = [
            list(zip(K.indices[a:b].tolist(), rationals(K.data[a:b]), strict=True))
            for a, b in zip(K.indptr[:-1], K.indptr[1:], strict=True)
        ]
        return [
            (
                ExactEdge(0, -1, kind, rational(float(weight[e])), list(range(k)), rationals(center[e]), parameter),
                lines[e * k : (e + 1) * k],
            )
            for e in range(m)
        ]

    def at(self, w: Any) -> Bounds:
        """P at w, exactly."""
        flat = [v for row in rationals(w) for v in row]
        each = self.samples.at(w), self.beside.at([flat])
        low: Any = sum(own.lower for own in each)
        high: Any = None if any(own.upper is None for own in each) else sum(own.upper for own in each)
        for one, lines in self.rows:
            pairs = zip(lines, one.center, strict=True)
            value = penalty(one, [dot([v for _, v in line], [flat[i] for i, _ in line]) - c for line, c in pairs])
            if value is None:
                return Bounds(None, None)
            low = low + one.weight * value[0]
            high = None if high is None or value[1] is None else high + one.weight * value[1]
        return Bounds(low, high)

    def inside(self, w: Array) -> Bounds:
        """P where w is drawn inwards as far as its constraints ask for."""
        for t in PULLS:
            found = self.at(w + t * (self.drawn.inner - w))
            if found.feasible:
                return found
        return self.at(self.drawn.inner)


def reference(drawn: Written) -> Array | None:
    """The optimum of the same model in CVXPY, by Clarabel at its tightest."""
    form, size = drawn.problem.form, float(np.abs(drawn.inner).max())
    unit = max(form.primal(drawn.inner), 1e-300)
    v = cp.Variable(form.shape)
    value = [loss_of(part, v[part.node], np.full(form.d, size), unit) for part in drawn.parts]
    value += [loss_of(part, cp.vec(v, order="C"), np.full(v.size, size), unit) for part in drawn.beside]
    constraints = []
    for edge in form.edges:
        K, kind, phi, c = edge.flat(form.d), type(edge.penalty).__name__, cast(Any, edge.penalty), edge.weight / unit
        shape = (edge.count, form.width(edge))
        Z = cp.reshape(K @ cp.vec(v, order="C"), shape, order="C")
        Z = Z if edge.center is None else Z - edge.center / size
        match kind:
            case "L1":
                value.append(size * c @ cp.sum(cp.abs(Z), axis=1))
            case "L2":
                value.append(size * c @ cp.norm(Z, 2, axis=1))
            case "LInf":
                value.append(size * c @ cp.max(cp.abs(Z), axis=1))
            case "SquaredL2":
                value.append(size**2 * cp.sum(cp.multiply(c[:, None], cp.square(Z))) / 2)
            case "HuberNorm":
                value.append(phi.delta**2 * c @ cp.huber(cp.norm(Z, 2, axis=1) * (size / phi.delta)) / 2)
            case "Ball":
                constraints.append(cp.norm(Z, 2, axis=1) <= phi.radius / size)
            case "Box":
                constraints += [phi.low / size <= Z, phi.high / size >= Z]
            case _:
                constraints.append(Z >= 0)
    problem = cp.Problem(cp.Minimize(sum(value)), constraints)
    try:
        problem.solve(solver=cp.CLARABEL, **TIGHT)
    except cp.SolverError:
        return None
    return None if v.value is None or not np.isfinite(v.value).all() else size * v.value


def examine(seed: int) -> Row:
    """The answers of all methods to the model of a seed, judged."""
    began, row = time.process_time(), Row(seed, [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": judged here
            _examine(row, written(seed))
    except Exception:  # noqa: BLE001  (whatever it is, it belongs into the table)
        row.error = traceback.format_exc(limit=-4)
    row.seconds = time.process_time() - began
    return row


def _examine(row: Row, drawn: Written) -> None:
    row.what = drawn.what
    judge, found = Judge(drawn), dict[str, Any]()
    known = {"the inner point": judge.at(drawn.inner)}
    if (w := reference(drawn)) is not None:
        known["CVXPY's point"] = judge.inside(w)
    for name, make in METHODS.items():
        if make().lacks(drawn.problem.form):
            continue
        try:
            found[name] = drawn.problem.solve(make(), gap=GAP, seconds=SECONDS, progress=False, on_failure="return")
        except Exception as error:  # noqa: BLE001  (whatever it is, it belongs into the table)
            row.raised.append(f"{name}: {raised(name, error).message}")
    here = {name: judge.at(solution.certificate.w) for name, solution in found.items()}
    known |= {f"the point of {name}": at for name, at in here.items() if at.feasible}
    least = min(at.upper for at in known.values() if at.upper is not None)
    points = {name: (solution.certificate.w, here[name]) for name, solution in found.items() if here[name].feasible}
    for name, solution in found.items():
        c = solution.certificate
        if c.valid:
            row.false += [f"{name}: {lie}" for lie in held_lies(solution, points)]
        row.answers.append({"method": name, "status": solution.status, "gap": c.relative_gap})
        if not c.valid:
            continue
        if c.primal < np.inf and not above(c.primal, here[name]):
            row.false.append(f"{name}: P <= {c.primal!r} is false at its point: {approximately(here[name].lower)!r}")
        lies = [f"{k}, by {excess(c.dual, at):.3g}" for k, at in known.items() if not below(c.dual, at)]
        row.false += [f"{name}: {c.dual!r} exceeds P at {lie}" for lie in lies]
        far = approximately(rational(c.primal) - least) if np.isfinite(c.primal) else np.inf
        if solution.status == "certified" and far > 1.01 * GAP * max(abs(c.primal), _common(drawn)):
            row.false.append(
                f"{name}: certified, and P is {far:.3g} above a point where it is {approximately(least)!r}"
            )


def held_lies(solution: Any, points: dict[str, tuple[Array, Bounds]]) -> list[str]:
    """Rows that are said to hold, and by what margin, where a point tells otherwise: by flows that lie inside the
    subgradients by a margin every w costs margin |z - at| more than they are worth."""
    table, form, lies, begin = solution.held().table, solution.form, list[str](), 0
    parts = separate(form)
    for edge in parts.form.edges:
        if isinstance(edge.penalty, AbstractSmoothPenalty):
            continue
        mine = table.iloc[begin : begin + edge.count]
        begin += edge.count
        for name, (w, at) in points.items():
            z = edge.difference(w)
            with np.errstate(invalid="ignore"):
                far = np.abs(z[:, 0] - mine["at"]) if z.shape[1] == 1 else edge.penalty.value(z)
                far = np.maximum(np.asarray(far) - 8.0 * rounding(edge, form, w).max(axis=1), 0.0)
                cost = mine["margin"].to_numpy() * far * (1.0 - 1e-9)
            spent = np.inf if at.upper is None else approximately(at.upper - rational(solution.certificate.dual))
            for e in np.flatnonzero((mine["state"] == "held").to_numpy() & (cost > spent * (1.0 + 1e-9))).tolist():
                lies.append(f"{mine['row'].iloc[e]!r} of {edge.name} does not hold at {name}")
    assert begin == len(table)
    return lies


def _common(drawn: Written) -> float:
    return 1e-3 * float(drawn.problem.form.primal(np.zeros(drawn.problem.form.shape)))


def counted(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The statuses by method, and how often rows and penalties of each kind were drawn."""
    lines = []
    for name in METHODS:
        statuses = Counter(a["status"] for row in rows for a in row["answers"] if a["method"] == name)
        lines.append(f"{name}: " + ", ".join(f"{number} {status}" for status, number in statuses.most_common()))
    drawn = Counter(what for row in rows for what in row["what"])
    return [*lines, "drawn: " + ", ".join(f"{number} {what}" for what, number in sorted(drawn.items()))]

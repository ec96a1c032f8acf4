"""Random problems for the tests of the core: what is written beside them as plain numbers, evaluated by loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.soundness.formulas import excess, loss_conjugate, loss_values, penalty_conjugate, penalty_value
from benchmarks.soundness.formulas import predictors as predictors_of
from graphreg.distributed import InProcess
from graphreg.form.form import DualPoint
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.view import LocalView

# Random problems to which the interior-point method applies.
INTERIOR = (
    *(0, 1, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 16, 18, 30, 31, 32, 33, 34, 36, 38, 40, 41, 42, 43, 44, 46, 48, 49, 50),
    *(51, 52, 53, 54, 56, 58, 100, 101, 102, 103),
)

# The seeds below 40 of random problems whose losses and penalties at nodes are smooth. They stand here, and
# test_gradients.py says whether they are right: every worker would draw the problems, before any test.
SMOOTH = [seed for seed in range(40) if seed % 10 not in (5, 7, 9) or seed == 29]


# ---- the sums --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Entry:
    """A sample or an edge of the plain problem, and where it stands in the form."""

    block: int
    row: int
    plain: object
    index: int = 0  # of a sample, within its node
    sign: float = 1.0  # of an edge; -1 where it is reversed


def samples_of(drawn):
    parts = {part.node: part for part in drawn.plain.samples}
    form, out = drawn.problem.form, []
    for k, block in enumerate(form.samples):
        seen = dict.fromkeys(range(form.n), 0)
        for row, i in enumerate(block.node.tolist()):
            out.append(Entry(k, row, parts[form.labels[i]], seen[i]))
            seen[i] += 1
    assert len(out) == sum(len(part.y) for part in parts.values())
    return out


def edges_of(drawn):
    form, known, out = drawn.problem.form, {}, []
    for edge in drawn.plain.edges:
        known.setdefault((frozenset((edge.tail, edge.head)), edge.kind, tuple(edge.columns)), []).append(edge)
    for k, block in enumerate(form.edges):
        columns = tuple(range(form.d)) if block.features is None else tuple(block.features.tolist())
        for row, (i, j) in enumerate(zip(block.tail.tolist(), block.head.tolist(), strict=True)):
            tail, head = form.labels[i], None if j < 0 else form.labels[j]
            plain = known[frozenset((tail, head)), type(block.penalty).__name__, columns].pop(0)
            out.append(Entry(k, row, plain, sign=1.0 if plain.tail == tail else -1.0))
    assert not any(known.values())
    return out


def written_primal(drawn, w):
    """P(w), every sample and every edge by its formula."""
    place = {label: i for i, label in enumerate(drawn.problem.form.labels)}
    total = 0.0
    for part in drawn.plain.samples:
        total += float(part.scale @ loss_values(part, predictors_of(part, w[place[part.node]])))
    for edge in drawn.plain.edges:
        z = w[place[edge.tail], edge.columns]
        z = z - edge.center if edge.head is None else z - w[place[edge.head], edge.columns]
        total += edge.weight * penalty_value(edge, z) if excess(edge, z) <= room(edge) else np.inf
    return total


def room(edge):
    """The distance by which rounding may move a point out of a ball or a box that it was drawn into."""
    if edge.kind not in ("Ball", "Box"):
        return 0.0
    sizes = np.abs(np.asarray(edge.parameter, dtype=float))
    return 1e-12 * float(np.max(sizes[np.isfinite(sizes)], initial=0.0))


def written_dual(drawn, point):
    """Q(u, a), every sample and every edge by its formula."""
    total = 0.0
    for entry in samples_of(drawn):
        part, r, a = entry.plain, entry.index, point.prices[entry.block][entry.row]
        total -= part.scale[r] * loss_conjugate(part, r, a / part.scale[r])
        total += float(np.sum(a * part.offset[r]))
    for entry in edges_of(drawn):
        edge, u = entry.plain, entry.sign * point.flows[entry.block][entry.row]
        total -= edge.weight * penalty_conjugate(edge, u / edge.weight) + float(u @ edge.center)
    return total


def written_balance(drawn, point):
    """(K'u)_i + X_i'a_i, (n, d)."""
    form = drawn.problem.form
    place = {label: i for i, label in enumerate(form.labels)}
    out = np.zeros(form.shape)
    for entry in samples_of(drawn):
        part, a = entry.plain, point.prices[entry.block][entry.row]
        out[place[part.node]] += a if part.X is None else np.multiply.outer(part.X[entry.index], a).ravel()
    for entry in edges_of(drawn):
        edge, u = entry.plain, entry.sign * point.flows[entry.block][entry.row]
        out[place[edge.tail], edge.columns] += u
        if edge.head is not None:
            out[place[edge.head], edge.columns] -= u
    return out


# ---- points ----------------------------------------------------------------------------------------------------------
def random_w(drawn, rng):
    """Parameters of the size of the data; not inside constraints."""
    return drawn.plain.size * rng.standard_normal(drawn.problem.form.shape)


def random_dual(form, rng):
    """Flows and prices at random inside their domains, not conserved."""
    nothing = form.nothing()
    slopes = form.conservation(DualPoint(nothing.flows, form.gradient_prices(np.zeros(form.shape))))
    size = float(np.sqrt(np.mean(slopes**2)))
    flows = [edge.clip(size * rng.standard_normal(u.shape)) for edge, u in zip(form.edges, nothing.flows, strict=True)]
    prices = []
    for block in form.samples:
        b = block.loss.gradient(block.offset, block.y) + rng.standard_normal(block.offset.shape)
        prices.append(block.column(block.scale) * block.loss.clip(b, block.y))
    return DualPoint(tuple(flows), tuple(prices))


def view_of(form):
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)))


def iterate(method, form, rounds, start=None):
    """The states of a method after the given rounds, in order."""
    state = method.init(view_of(form), start)
    out, k = [], 0
    for t in sorted(rounds):
        while k < t:
            state, k = method.step(state), k + 1
        out.append(state)
    return out

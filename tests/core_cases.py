"""Random problems for the tests of the core: what is written beside them as plain numbers, evaluated by loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphreg.engines import InProcess
from graphreg.form import DualPoint
from graphreg.lowering.site import Site
from graphreg.methods.ledger import Ledger


# ---- one sample and one edge, by formula -----------------------------------------------------------------------------
def loss_value(family, x, y, delta):
    match family:
        case "squared" | "mean":
            return float(np.sum((x - y) ** 2)) / 2
        case "logistic":
            return float(np.logaddexp(0.0, -y * x))
        case "huber":
            r = abs(x - y)
            return r * r / 2 if r <= delta else delta * r - delta * delta / 2
    raise AssertionError(family)


def loss_conjugate(family, b, y, delta):
    match family:
        case "squared" | "mean":
            return float(np.sum(b * b / 2 + b * y))
        case "logistic":
            q = -y * b
            if not 0 <= q <= 1:
                return np.inf
            return sum(p * np.log(p) for p in (q, 1 - q) if p > 0)
        case "huber":
            return b * b / 2 + b * y if abs(b) <= delta else np.inf
    raise AssertionError(family)


def penalty_value(edge, z):
    norm, p = float(np.sqrt(z @ z)), edge.parameter
    match edge.kind:
        case "L1":
            value = np.abs(z).sum()
        case "L2":
            value = norm
        case "LInf":
            value = np.abs(z).max()
        case "SquaredL2":
            value = norm**2 / 2
        case "Quadratic":
            value = ((p @ z) ** 2).sum() / 2
        case "HuberNorm":
            value = norm**2 / 2 if norm <= p else p * norm - p * p / 2
        case "Ball":
            value = indicator(norm <= p * (1 + 1e-12))
        case "Zero":
            value = indicator(not z.any())
        case "NonNegative":
            value = indicator((z >= 0).all())
        case "Box":
            slack = 1e-12 * np.where(np.isfinite(p), np.abs(p), 0.0)
            value = indicator((z >= p[0] - slack[0]).all() and (z <= p[1] + slack[1]).all())
    return value


def penalty_conjugate(edge, u):
    norm, p = float(np.sqrt(u @ u)), edge.parameter
    match edge.kind:
        case "L1":
            value = indicator(np.abs(u).max() <= 1)
        case "L2":
            value = indicator(norm <= 1 + 1e-15)
        case "LInf":
            value = indicator(np.abs(u).sum() <= 1 + 1e-15)
        case "SquaredL2":
            value = norm**2 / 2
        case "Quadratic":  # phi = ||R z||^2 / 2, so phi*(u) = ||v||^2 / 2 with the least v that has R'v = u
            v = np.linalg.lstsq(p.T, u)[0]
            value = v @ v / 2 + indicator(np.linalg.norm(p.T @ v - u) <= 1e-10 * norm)
        case "HuberNorm":
            value = norm**2 / 2 + indicator(norm <= p * (1 + 1e-15))
        case "Ball":
            value = p * norm
        case "Zero":
            value = 0.0
        case "NonNegative":
            value = indicator((u <= 0).all())
        case "Box":
            value = sum(max(low * x, high * x) for low, high, x in zip(*p, u, strict=True) if x != 0)
    return value


def indicator(inside):
    return 0.0 if inside else np.inf


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
        own = w[place[part.node]]
        for r, y in enumerate(part.y):
            x = own if part.X is None else float(part.X[r] @ own + part.offset[r])
            total += part.scale[r] * loss_value(part.family, x, y, part.delta)
    for edge in drawn.plain.edges:
        z = w[place[edge.tail], edge.columns]
        z = z - edge.center if edge.head is None else z - w[place[edge.head], edge.columns]
        total += edge.weight * penalty_value(edge, z)
    return total


def written_dual(drawn, point):
    """Q(u, a), every sample and every edge by its formula."""
    total = 0.0
    for entry in samples_of(drawn):
        part, r, a = entry.plain, entry.index, point.prices[entry.block][entry.row]
        total -= part.scale[r] * loss_conjugate(part.family, a / part.scale[r], part.y[r], part.delta)
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
        out[place[part.node]] += a if part.X is None else part.X[entry.index] * a
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


def site_of(form):
    return Site(form, InProcess(form, Ledger()))


def iterate(method, form, rounds, start=None):
    """The states of a method after the given rounds, in order."""
    state = method.init(site_of(form), start)
    out, k = [], 0
    for t in sorted(rounds):
        while k < t:
            state, k = method.step(state), k + 1
        out.append(state)
    return out

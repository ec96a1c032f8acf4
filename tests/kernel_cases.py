"""Problems for the kernel of bounds, and what is true of them in rational numbers, from the forms alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isqrt

import networkx as nx
import numpy as np
import scipy.sparse as sp

import graphreg as gr
from benchmarks.soundness.reals import ZERO, Rational
from graphreg.certificate.kernel.balance import Answers, Balanced, Witness
from graphreg.certificate.kernel.system import System
from graphreg.form import Form
from graphreg.terms import EdgeBlock, Matrix, Strength, alike
from graphreg.terms.records import IN_ROWS

LINE = nx.path_graph(4)
HALF = Rational(1, 2**53)  # of a unit in the last place of 1
ALMOST = 2.0**-53 * 0.98  # what a sum of 1 and more loses whole


# ---- numbers ---------------------------------------------------------------------------------------------------------
def exactly(x, over=1):
    """The quotient of a number, as the rational that it is, and a whole one."""
    up, down = x.as_integer_ratio() if hasattr(x, "as_integer_ratio") else (x, 1)  # which flint's lack
    return Rational(up, down * over)


def number(x):
    return exactly(float(x))


def numbers(values):
    return [exactly(x) for x in np.ravel(values).tolist()]


def within(pair, at, value):
    """The exact value lies within the error of the pair."""
    assert abs(number(pair.high[at]) + number(pair.low[at]) - value) <= number(pair.error[at])


def wide(rng, size, decades=40):
    return rng.standard_normal(size) * 10.0 ** rng.uniform(-decades / 2, decades / 2, size)


def root(x):
    """Not more than the square root of a rational, by less than 2^-400 of it or so."""
    scale = 1 << 1000
    return Rational(isqrt(x.numerator * scale * scale // x.denominator), scale)


def solved(A, b):
    """A solution of A x = b in rationals: None where there is none."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    size, pivots = len(rows[0]) - 1, []
    for c in range(size):
        k = len(pivots)
        at = next((i for i in range(k, len(rows)) if rows[i][c]), None)
        if at is None:
            continue
        rows[k], rows[at] = rows[at], rows[k]
        for i in range(len(rows)):
            if i != k and rows[i][c]:
                factor = rows[i][c] / rows[k][c]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
        pivots.append(c)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    x = [ZERO] * size
    for row, c in zip(rows, pivots, strict=False):
        x[c] = row[-1] / row[c]
    return x


def times(rows, v):
    return [sum((x * y for x, y in zip(row, v, strict=True)), ZERO) for row in rows]


# ---- problems --------------------------------------------------------------------------------------------------------
def regression(d=3, nodes=4, samples=24, seed=4, sizes=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, d)) * 10.0 ** rng.uniform(-sizes, sizes, d)
    return gr.NodeData.from_arrays(X, rng.standard_normal(samples), np.arange(samples) % nodes)


def classes(nodes=1, samples=18):
    rng = np.random.default_rng(3)
    X, y, node = rng.standard_normal((samples, 2)), rng.integers(3, size=samples), np.arange(samples) % nodes
    return gr.MultinomialLoss(gr.NodeData.from_arrays(X, y, node))


def means(d=2):
    rng = np.random.default_rng(5)
    return gr.MeanLoss(gr.NodeData.from_arrays(None, rng.standard_normal((9, d)), np.arange(9) % 4))


def labels(nodes=4):
    rng = np.random.default_rng(6)
    return gr.NodeData.from_arrays(rng.standard_normal((12, 2)), rng.integers(2, size=12), np.arange(12) % nodes)


def centers(d, seed=7):
    rng = np.random.default_rng(seed)
    return {i: rng.standard_normal(d) for i in range(4)}


THIN = np.outer([0.1, 0.3, -0.7], [0.1, 0.3, -0.7])  # of rank 1
FORMS = {
    "classes alone": classes,
    "classes along a path": lambda: classes(4) + 0.05 * gr.TotalVariation(LINE, gr.L2()),
    "squares along a path": lambda: gr.SquaredLoss(regression()) + 0.1 * gr.TotalVariation(LINE, gr.L1()),
    "columns over 12 decades": lambda: gr.SquaredLoss(regression(sizes=6)) + 0.1 * gr.TotalVariation(LINE, gr.LInf()),
    "some columns": lambda: gr.HuberLoss(regression()) + 0.1 * gr.TotalVariation(LINE, gr.L2(), features=["x2", "x0"]),
    "half lines": lambda: gr.SquaredLoss(regression()) + gr.NodePenalty(gr.NonNegative(), features=["x1"]),
    "a consensus": lambda: gr.QuantileLoss(regression()) + gr.Consensus(LINE),
    "flows of a root": lambda: gr.SquaredLoss(regression()) + gr.TotalVariation(LINE, gr.Quadratic(THIN)),
    "a root at nodes": lambda: (
        gr.SquaredLoss(regression())
        + gr.NodePenalty(gr.Quadratic(THIN), center=centers(3), features=["x0", "x1", "x2"])
    ),
    "means in boxes": lambda: (
        means() + 0.3 * gr.TotalVariation(LINE, gr.SquaredL2()) + gr.NodePenalty(gr.Box(-1.0, 0.7), center=centers(2))
    ),
    "labels": lambda: (
        gr.HingeLoss(labels(2))
        + 0.7 * gr.NodePenalty(gr.SquaredL2(), center=[0.3, -0.2])
        + gr.Consensus(nx.path_graph(2))
    ),
    "two graphs, two parts": lambda: (
        gr.SquaredLoss(regression())
        + 0.1 * gr.TotalVariation(nx.Graph([(0, 1), (2, 3)]), gr.L1())
        + gr.TotalVariation(nx.Graph([(0, 1)]), gr.Ball(0.5))
    ),
    "no samples": lambda: (
        means(1) + 0.3 * gr.TotalVariation(LINE, gr.L1()) + gr.NodePenalty(gr.SquaredL2(), center=centers(1))
    ),
}


def form_of(name):
    """With offsets of the classes, as where a common model is taken out."""
    form = gr.Problem(FORMS[name]()).form
    blocks = [
        alike(block, offset=np.random.default_rng(8).standard_normal(block.offset.shape)) if block.width == 3 else block
        for block in form.samples
    ]
    return replace(form, samples=() if name == "no samples" else tuple(blocks))


KNOWN = {}


# ---- B, and the functions whose prices and flows its columns are -----------------------------------------------------
def columns(form):
    """The columns of B: of each variable its entries by equation. In the order of the samples, then of the edges."""
    out = []
    for block in form.samples:
        A, k, own = block.A.tocsr(), block.width, block.loss.prices.dependent(block.y)
        rows = [dict(zip(A[[r]].indices.tolist(), numbers(A[[r]].data), strict=True)) for r in range(A.shape[0])]
        for r in range(len(block.node)):
            if own is None:
                out += rows[r * k : (r + 1) * k]
                continue
            last = rows[r * k + int(own[r])]
            for c in set(range(k)) - {int(own[r])}:
                out.append(rows[r * k + c] | {i: -x for i, x in last.items()})
    for edge in form.edges:
        mix, at = edge.penalty.composed(), list(range(form.d) if edge.features is None else edge.features)
        each = np.eye(len(at)) if mix is None else mix[0]
        for tail, head in zip(edge.tail.tolist(), edge.head.tolist(), strict=True):
            for row in each:
                entries = {tail * form.d + j: number(x) for j, x in zip(at, row, strict=True) if x}
                if head >= 0:
                    entries |= {head * form.d + j: -number(x) for j, x in zip(at, row, strict=True) if x}
                out.append(entries)
    return out


def pulled(found, v):
    """Bv, by equation."""
    out = {}
    for column, x in zip(found, v, strict=True):
        for i, b in column.items():
            out[i] = out.get(i, ZERO) + b * x
    return out


def conjugate(term, ends, b):  # noqa: PLR0911  (one for each kind)
    """f*(b) less what the anchor says, exactly, or from below where it has a root; None where it is infinite, which is
    beyond the ends for prices."""
    match term:
        case gr.SquaredLoss() | gr.MeanLoss() | gr.SquaredL2():
            return sum(x * x for x in b) / 2
        case gr.HuberLoss():
            return b[0] * b[0] / 2 if abs(b[0]) <= number(term.delta) else None
        case gr.QuantileLoss() | gr.HingeLoss():
            return ZERO if ends[0] <= b[0] <= ends[1] else None
        case gr.L1():
            return ZERO if max(map(abs, b)) <= 1 else None
        case gr.L2():
            return ZERO if sum(x * x for x in b) <= 1 else None
        case gr.LInf():
            return ZERO if sum(map(abs, b)) <= 1 else None
        case gr.Zero():
            return ZERO
        case gr.Ball():
            return number(term.radius) * root(sum(x * x for x in b))
        case gr.NonNegative():
            return ZERO if max(b) <= 0 else None
        case gr.Box():
            low, high = number(term.low), number(term.high)
            return sum(max(low * x, high * x) for x in b)
    raise AssertionError(term)


def functions(form):
    """Of each function its number of variables, scale, conjugate, target t and component."""
    if id(form) not in KNOWN:
        KNOWN[id(form)] = form, list(_functions(form))
    return KNOWN[id(form)][1]


def _functions(form):
    for block in form.samples:
        assert block.loss.prices.dependent(block.y) is None
        anchor = np.broadcast_to(block.loss.anchor(block.y), block.offset.shape)
        domain, bounded = block.loss.domain(block.y), isinstance(block.loss, gr.QuantileLoss | gr.HingeLoss)
        scale = numbers(block.scale)
        for r in range(len(block.node)):
            t = [a - b for a, b in zip(numbers(anchor[r]), numbers(block.offset[r]), strict=True)]
            ends = [number(end[r]) for end in domain] if bounded else None
            star = partial(conjugate, block.loss, ends)
            yield block.width, scale[r], star, t, int(form.component[block.node[r]])
    for edge in form.edges:
        mix, penalty = edge.penalty.composed() or (None, edge.penalty)
        for e in range(len(edge.tail)):
            k = form.width(edge)
            t = [ZERO] * k if edge.center is None else numbers(edge.center[e])
            if mix is not None:
                t = times([numbers(row) for row in mix], t)
            yield (
                len(t),
                number(edge.weight[e]),
                partial(conjugate, penalty, None),
                t,
                int(form.component[edge.tail[e]]),
            )


def dual_value(form, v):
    """- sum s f*(v / s) - <v, t> by component; None where it is -inf."""
    out, at = [ZERO] * form.n_components, 0
    for k, s, star, t, c in functions(form):
        mine, at = v[at : at + k], at + k
        value = star([x / s for x in mine])
        if value is None:
            out[c] = None
        elif out[c] is not None:
            out[c] -= s * value + sum(x * y for x, y in zip(mine, t, strict=True))
    assert at == len(v)
    return out


# ---- rows of any kind ------------------------------------------------------------------------------------------------
def rows_of(K, penalty, form, k=1, scale=None, target=None):
    """s phi((Kw)_e - t_e) for a penalty and any sparse K, k rows of it for each e."""
    K = sp.csr_array(K)
    scale = np.ones(K.shape[0] // k) if scale is None else scale
    return EdgeBlock(penalty, Strength(), Matrix(K, k, form.n), scale, target, IN_ROWS, "rows")


def with_rows(form, *blocks):
    """The form with more functions."""
    return Form(form.space, form.latent, form.samples, (*form.edges, *blocks))


# ---- witnesses -------------------------------------------------------------------------------------------------------
def answers(system, R):
    return Answers(system, sp.csr_array(R))


def witness(system, R, v, z, low=None, dropped=None, plain=False):
    found = R if isinstance(R, Answers) else answers(system, R)
    return Witness(v, np.zeros_like(v) if low is None else low, found, z, dropped or {}, plain)


def box(form, v, low=None, spread=None):
    zero = np.zeros_like(v)
    none = np.zeros(form.n_components, dtype=bool)
    return Balanced(v, zero if low is None else low, zero if spread is None else spread, none)


def blank(d, n=1):
    """A form of d numbers at each of n nodes, without any function."""
    form = gr.Problem(gr.MeanLoss(gr.NodeData.from_arrays(None, np.zeros((n, d)), np.arange(n)))).form
    return replace(form, samples=(), edges=())


def general(K, penalty=None, d=None, **more):
    """One node, whose functions are one of each row of K."""
    K = np.asarray(K, dtype=float)
    form = blank(K.shape[1] if d is None else d, K.shape[1] // (K.shape[1] if d is None else d))
    return System(with_rows(form, rows_of(K, penalty or gr.SquaredL2(), form, **more)))


def matrix(system):
    """B in rationals, by equations."""
    return [numbers(row) for row in system.kind.B.toarray()]


def balance_holds(system, w, found):
    """In rationals there is a balanced point in the box: all equations of components that are not lost vanish, and each
    correction lies within its size. False where there may be none beside the corrections looked at."""
    B, R = matrix(system), [numbers(row) for row in w.answers.R.toarray()]
    v = [x + y for x, y in zip(numbers(w.high), numbers(w.low), strict=True)]
    z, spread = numbers(w.z), numbers(found.spread)
    kept = [i for i in range(len(B)) if i not in w.dropped and not found.lost[system.component[i]]]
    BR = [[sum(b * r[j] for b, r in zip(B[i], R, strict=True) if b and r[j]) for j in kept] for i in kept]
    left = times(B, v)
    x = solved(BR, [-left[i] for i in kept]) if kept else []
    if x is None:
        return False
    corrected = dict(zip(kept, x, strict=True))
    moved = [sum((row[j] * y for j, y in corrected.items()), ZERO) for row in R]
    fits = all(abs(y) <= z[j] for j, y in corrected.items())
    fits = fits and all(abs(m) <= s for m, s in zip(moved, spread, strict=True))
    after = times(B, [a + m for a, m in zip(v, moved, strict=True)])
    return fits and all(y == 0 for i, y in enumerate(after) if not found.lost[system.component[i]])

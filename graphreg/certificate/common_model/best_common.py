"""The best common model: one parameter vector for all nodes, which says of what size a problem's numbers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...form import EdgeBlock, Form
from ...oracles import NodeGradients, minimiser
from ...terms import Array, at_a_time, strengths
from ...terms.penalties import AbstractConstraint
from .coordinates import largest
from .pooled import ENOUGH, Pool, magnitude, moved, of_difference, pooled, predictors

SHARE = 1e-3  # of P_common: what an objective is measured by where it is smaller
EPS = 2.0**-52
STRONG = 1e-3  # of a length: below it what a penalty allows for is another scale
FEW = 16  # samples by which most columns are seen not to be constant
DECADES = 40  # by which a penalty may shorten a length
CELLS = 1 << 20  # numbers that are looked at together
NEAR = 1e-2  # of the losses at 0: where those at the best common model are less, it is worth while to run around it
FURTHER = 3  # sums over all nodes: two Gram matrices for the coordinates, and one for least squares to begin with
FALLS = 1e-3  # of the objective: less of a fall ends the steps of a model that is found by sums over nodes
SHORTEST = 2.0**-30  # of these steps
RESOLVED = 1e10  # times what rounding leaves of the objective: below it a fit is exact for all that floats can tell


@dataclass(frozen=True)
class Common:
    """The best common model, and the sizes that it tells.

    Attributes
    ----------
    w : (d,) array
        Its parameters.
    value : float
        P_common, its objective without constraints.
    floor : float
        ``max(1e-3 P_common, rounding)``, see `common`: the least yardstick of a relative gap.
    size : float
        A scale of the objective: |P_common|, and above 0 also where that is small.
    sums : int
        How often a gradient and a Hessian were added up over all nodes to find it.
    """

    w: Array
    value: float
    floor: float
    size: float
    sums: int

    @property
    def exact(self) -> bool:
        """True where the common model fits all data, for all that can be told."""
        return SHARE * abs(self.value) < self.floor


def common(form: Form) -> Common:
    """The best common model of a form, computed once for the strengths of this moment. Penalties of rows that are no
    edges are left out, so that P_common is no larger with them.

    P_common counts as at least a hundredth of sum_r s_r min(|l_r(0; y_r)|, max(1, |l_r| at the best common model)) of
    the losses that are no functions of the difference of predictor and target, and thus have no shift to be invariant
    to: these vanish where classes are separable, or by chance; and at 0 they may be of any size, or infinite, in large
    units of targets (Gamma). The floor is also at least the rounding, 1e10 sum_r s_r B_r, where B_r is how much a loss
    bends over the rounding of its predictor, (l(x + d) + l(x - d)) / 2 - l(x) with
    d = eps (|o_r| + |y_r| + sum_j |x_rj w_j|), |y_r| where it is a function of the difference; but no more than a
    thousandth of the losses at 0, or their rounding there: where columns are collinear, huge coefficients may cancel
    that no better model needs. Offsets of rows are data, too: c_r (phi(d) + phi(-d)) / 2 with d = eps |b_r| counts as
    such a bend, since where all of them agree the optimum is 0.
    """
    key = strengths((*form.samples, *form.to_ground, *form.unlike_edges))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return form.once("common", key, lambda: _common(pooled(form)))


def floor(form: Form, size: float) -> float:
    """The floor of `common`, or 0 where the ``size`` of an objective is certainly no less: then the best common model,
    which takes a hundred times as long as this, need not be found.

    It is no better than 0, so that its objective is at most P(0), and no less than what the conjugates of the losses
    say; and what rounding leaves of it counts for no more than at 0.
    """
    key = strengths((*form.samples, *form.to_ground, *form.unlike_edges))
    if form.memory.get("common", (None,))[0] != key:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if size >= form.once("most floor", key, partial(_most, form)):
                return 0.0
    return common(form).floor


def _most(form: Form) -> float:
    zero, ground = np.zeros(form.shape), [e for e in form.to_ground if not isinstance(e.penalty, AbstractConstraint)]
    bends, zeros = _rounding(pooled(form), zero[0])
    top = sum(float(block.values(zero).sum()) for block in (*form.samples, *ground))
    least = sum(float(block.duals(np.zeros_like(block.offset)).sum()) for block in form.samples)
    return max(SHARE * (2.0 * (abs(top) + abs(least)) + zeros), RESOLVED * bends)


def common_by_sums(form: Form, reduce: Callable[[Array], Array]) -> Common:
    """A good common model where the nodes of a form are a part of those of a problem, and ``reduce`` sums values per
    node (n, ...) over all nodes of that: all parts find the same.

    By Newton's method from 0, or 0 itself where that is better, on the losses, smoothed where they have kinks, and on
    smooth node penalties. The floor is that of `common` but for the rounding.
    """
    ground, sums = NodeGradients(replace(form, samples=())), 0
    d = form.d

    def nodes(v: Array) -> Array:
        return np.tile(v, (form.n, 1))

    def value(v: Array) -> float:
        each = ground.value(nodes(v))
        for block in form.samples:
            losses = block.loss.smoothed(block.predict(nodes(v)), block.y)[0]
            each += np.bincount(block.node, block.scale * losses, form.n)
        return float(reduce(each[:, None])[0])

    def step(v: Array) -> tuple[Array, float]:
        nonlocal sums
        sums += 1
        slope, H = ground.full(nodes(v)), ground.hessians(nodes(v))
        for block in form.samples:
            _, gradient, curvature = block.loss.smoothed(block.predict(nodes(v)), block.y)
            slope += block.adjoint(block.scaled(gradient), form.shape)
            H += block.sums(block.scaled(curvature))
        total = reduce(np.concatenate([slope[:, None], H], axis=1))
        if not np.isfinite(total).all():
            return np.zeros(d), np.nan
        move = np.linalg.lstsq(total[1:], total[0])[0]
        return move, float(total[0] @ move)

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        w = minimiser(value, step, np.zeros(d), settled=FALLS, shortest=SHORTEST)[0]
        none = np.zeros(form.shape)
        each = np.stack([*_by_node(form, nodes(w), none), _by_node(form, none, none)[0]], axis=1)
        there, least, zero = reduce(each).tolist()
    w, best = (w, there) if there <= zero else (np.zeros(d), zero)
    size = max((x for x in (abs(best), ENOUGH * least) if np.isfinite(x)), default=0.0)
    return Common(w, best, SHARE * size, size or 1.0, sums)


def _by_node(form: Form, w: Array, zero: Array) -> tuple[Array, Array]:
    """The losses and node penalties without constraints at each node, and of these the losses that are no functions of
    a difference, by their size at 0, see `common`."""
    total, other = np.zeros(form.n), np.zeros(form.n)
    for block in form.samples:
        losses = block.values(w)
        total += np.bincount(block.node, losses, form.n)
        if not of_difference(block):
            least = _own_unit(np.abs(block.values(zero)), np.abs(losses), block.scale)
            other += np.bincount(block.node, least, form.n)
    for edge in form.to_ground:
        if not isinstance(edge.penalty, AbstractConstraint):
            total += np.bincount(edge.tail, edge.values(w), minlength=form.n)
    return total, other


def center(form: Form) -> tuple[Array, int]:
    """Around which parameters a method is to run, the same at all nodes, and how many sums over all nodes these take.

    The best common model of the losses, on the coordinates that no edge to the ground acts on: where these have an
    intercept (or are means), so that a shift of the targets is one of w and changes no round; or where losses of the
    difference of predictor and target are less than a hundredth there of what they are at 0, so that around 0 digits
    would be lost. Elsewhere 0. No strength of a penalty changes it.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return form.once("center", strengths(form.samples), partial(_center, form))


def _center(form: Form) -> tuple[Array, int]:
    ground, none = form.to_ground, np.zeros(form.d)
    fixed = np.zeros(form.d, dtype=bool)
    for edge in ground:
        fixed[edge.coordinates] = True
    own, form = form, pooled(form)
    if fixed.all() or not any(of_difference(block) for block in form.samples):
        return none, 0
    if ground:
        pool = Pool(form, fixed)
        w, sums = pool.descend(pool.start(), [])[0], FURTHER + pool.sums
    else:
        w, sums = common(own).w, common(own).sums
    near = _intercept(form, ~fixed) or _differences(form, w) < NEAR * _differences(form, none)
    return (w, sums) if near else (none, 0)


def _intercept(form: Form, free: Array) -> bool:
    """True where some free column is constant."""
    for block in form.samples:
        if block.X is None:
            continue
        p = block.X.shape[1]
        constant = free.reshape(p, -1).all(axis=1) & (block.X[:FEW] == block.X[:1]).all(axis=0)
        constant[constant] = (block.X[:, constant] == block.X[:1, constant]).all(axis=0)
        free = np.repeat(constant, len(free) // p)
    return bool(free.all() if all(block.X is None for block in form.samples) else free.any())


def _differences(form: Form, v: Array) -> float:
    """The losses that are functions of a difference, at v."""
    total = 0.0
    for block in form.samples:
        for some in block.some() if of_difference(block) else ():
            y, x = block.loss.moved(block.y[some], predictors(block, v, some))
            total += float(block.scale_of(some) @ np.abs(block.loss.value(x, y)))
    return total


def _common(form: Form) -> Common:
    pool = Pool(form)
    w, _, value = pool.fit()
    bends, zeros = _rounding(pool.form, w)
    least, rounding = ENOUGH * zeros, RESOLVED * bends
    if not rounding <= SHARE * max(abs(value), least):
        rounding = min(rounding, _plain_rounding(pool)) if rounding >= 0.0 else _plain_rounding(pool)
    known = [x if np.isfinite(x) else 0.0 for x in (abs(value), least, rounding)]  # losses may be infinite at 0
    floor, size = max(SHARE * known[0], SHARE * known[1], known[2]), max(known) or 1.0
    return Common(w, value, floor, size, FURTHER + pool.sums)


def lengths(form: Form) -> tuple[Array, Array]:
    """A scale of each parameter, (d,): how far it moves the losses at the best common model by about its ``size``; and
    one of its differences across edges and from centers: the same, but where penalties are so strong that they allow
    for less than a thousandth."""
    long = lengths_of_losses(form)
    best, allowed = common(form), long.copy()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for edge in pooled(form).edges:
            _shorten(edge, allowed, best.size)
    return long, np.where(allowed < STRONG * long, allowed, long)


def lengths_of_losses(form: Form) -> Array:
    """The first of `lengths`."""
    best = common(form)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _lengths(pooled(form), best.w, best.size)


def _plain_rounding(pool: Pool) -> float:
    """A thousandth of the objective at 0, and at least its rounding: huge coefficients that cancel say nothing of what
    can be told apart, since at 0 there are none."""
    none = np.zeros_like(pool.base)
    return max(SHARE * abs(pool.value(none, [])), RESOLVED * _rounding(pool.form, none)[0])


def _rounding(form: Form, w: Array) -> tuple[float, float]:
    """The sums of s_r B_r, those of offsets among them, and of s_r |l_r(0; .)|, see `common`."""
    bends, zeros = 0.0, 0.0
    for block, some, scale, y, x in moved(form, w):
        shift = EPS * magnitude(block, w, some)
        value = block.loss.value(x, y)
        bend = (block.loss.value(x + shift, y) + block.loss.value(x - shift, y)) / 2.0 - value
        bends += float(scale @ np.maximum(bend, 0.0))
        zeros += float(scale @ _own_unit(np.abs(block.loss.value(np.zeros_like(x), y)), np.abs(value)))
    for edge in form.edges:
        if edge.map.edges is None and edge.center is not None and not isinstance(edge.penalty, AbstractConstraint):
            shift = EPS * np.abs(edge.center)
            bends += float(edge.weight @ (edge.penalty.value(shift) + edge.penalty.value(-shift))) / 2.0
    return bends, zeros


def _own_unit(zero: Array, there: Array, unit: Array | float = 1.0) -> Array:
    """Losses at 0, but no more than a ``unit``, which is that of a log-likelihood, or than they are ``there``."""
    return np.fmin(zero, np.fmax(there, unit))


def _lengths(form: Form, w: Array, size: float) -> Array:
    """sqrt(2 size / sum_r s_r h_r x_rj^2), h_r the steepness of the losses; of a column without data the longest."""
    bends, tops = np.zeros(len(w)), largest(form)
    for block, some, scale, y, x in moved(form, w):
        h = scale * block.loss.typical_curvature(x, y)
        if block.X is None:
            bends += h.sum()
        else:
            bends += np.repeat(h @ (block.X[some] / tops) ** 2, len(w) // len(tops))
    unit = np.repeat(tops, len(w) // len(tops)) if len(tops) else np.ones(len(w))
    known = (bends > 0.0) & np.isfinite(bends)
    lengths = np.sqrt(2.0 * size / np.where(known, bends, 1.0)) / unit
    return np.where(known, lengths, lengths[known].max(initial=0.0) or 1.0)


def _shorten(edge: EdgeBlock, lengths: Array, size: float) -> None:
    """Cut the lengths of an edge block's coordinates down, by a power of ten, to where its penalty is at most ``size``
    on an edge: a strong penalty allows for less than the data do."""
    if isinstance(edge.penalty, AbstractConstraint):
        return
    place = edge.columns(len(lengths))
    powers, weight = 10.0 ** -np.arange(DECADES), float(np.median(edge.weight))
    for some in at_a_time(CELLS // (DECADES * len(place)), len(place)):
        each = np.arange(len(place))[some]
        z = np.zeros((DECADES, len(each), len(place)))
        z[:, each - each[0], each] = powers[:, None] * lengths[place[each]]
        value = weight * edge.penalty.value(z.reshape(-1, len(place))).reshape(DECADES, -1)
        fits = ~(value > size)
        lengths[place[each]] *= np.where(fits.any(axis=0), powers[np.argmax(fits, axis=0)], powers[-1])

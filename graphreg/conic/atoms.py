"""Atoms of CVXPY at numbers that are known up to an interval: every rounding goes outwards. CVXPY's cones say the same
of an atom as its formula where `exactly_stored` says so.

IEEE sums, products, quotients and roots are the nearest doubles, so that the doubles next to them are bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..certificate import EPS, Pair, upwards
from ..terms import Array
from .verify import log_bounds, quadratic

Interval = tuple[Array, Array]  # the least and greatest values
MODEST = 600.0  # exp of what is larger is not followed
PEAK = 0.36787944117144239  # more than 1 / e, where -x log x is greatest, and that value


def _wide(low: Array, high: Array) -> Interval:
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def _is(x: Any) -> Interval:
    """A number, or numbers, that are known exactly."""
    return np.asarray(x, float), np.asarray(x, float)


def _plus(x: Interval, y: Interval) -> Interval:
    return _wide(x[0] + y[0], x[1] + y[1])


def _minus(x: Interval) -> Interval:
    return -x[1], -x[0]


def _times(x: Interval, y: Interval) -> Interval:
    all_ = [a * b for a in x for b in y]
    return _wide(np.minimum.reduce(all_), np.maximum.reduce(all_))


def _over(x: Interval, y: Interval) -> Interval:
    """x / y for y > 0."""
    some = [np.where(y[0] > 0.0, a / b, np.nan) for a in x for b in y]
    return _wide(np.minimum.reduce(some), np.maximum.reduce(some))


def _sum(x: Interval, axis: Any = None) -> Interval:
    count = x[0].size + 3
    low, high = (part.sum(axis=axis) for part in x)
    off = [upwards(count * EPS * np.abs(part).sum(axis=axis), 3) for part in x]
    return low - off[0], high + off[1]


def _abs(x: Interval) -> Interval:
    small = np.where((x[0] <= 0.0) & (x[1] >= 0.0), 0.0, np.minimum(np.abs(x[0]), np.abs(x[1])))
    return small, np.maximum(np.abs(x[0]), np.abs(x[1]))


def _square(x: Interval) -> Interval:
    x = _abs(x)
    low, high = _times(x, x)
    return np.maximum(low, 0.0), np.where(x[1] > 0.0, high, 0.0)


def _root(x: Interval) -> Interval:
    low, high = np.sqrt(np.maximum(x[0], 0.0)), np.sqrt(x[1])
    return np.maximum(np.nextafter(low, -1.0), 0.0), np.where(x[1] == 0.0, 0.0, np.nextafter(high, np.inf))


def _log(x: Interval) -> Interval:
    bounds = [log_bounds(np.where(part > 1e-300, part, 1.0)) for part in x]
    low, high = np.nextafter(bounds[0][0] - bounds[0][1], -np.inf), np.nextafter(sum(bounds[1]), np.inf)
    high = np.where(x[1] >= 0.0, np.where(x[1] > 1e-300, high, -690.0), np.nan)
    return np.where(x[0] > 1e-300, low, -np.inf), high


def _exp(x: Interval) -> Interval:
    """The bounds are proved by their logarithms."""
    found = list[Array]()
    for part, way, last in ((x[0], -1.0, 0.0), (x[1], 1.0, np.inf)):
        inner = np.clip(part, -MODEST, MODEST)
        some = np.exp(inner) * (1.0 + way * 32 * EPS * (1.0 + np.abs(inner)))
        value, missed = log_bounds(some)
        proved = way * (value - inner) - 2 * EPS * (np.abs(value) + np.abs(inner)) >= missed
        beyond = part < -MODEST if way < 0.0 else part > MODEST
        found.append(np.where(beyond, last, np.where(proved & ~np.isnan(part), some, np.nan)))
    return found[0], found[1]


def _power(x: Interval, p: Fraction) -> Interval:
    """x^p, of x >= 0 where p is no even number."""
    if p % 2 == 0:
        x = _abs(x)
    if (x[0] < 0.0).any() or (p <= 0 and not (x[0] > 0.0).all()):
        raise ValueError
    simple: dict[Fraction, Callable[[Interval], Interval]] = {Fraction(1): lambda x: x, Fraction(2): _square}
    simple[Fraction(1, 2)] = _root
    return simple[p](x) if p in simple else _exp(_scaled(_log(x), p))


def _scaled(x: Interval, p: Fraction) -> Interval:
    top, below = float(p.numerator), float(p.denominator)
    if Fraction(top) != p.numerator or Fraction(below) != p.denominator:
        raise ValueError
    return _over(_times(x, _is(top)), _is(below))


def _entropy(x: Interval) -> Interval:
    """-x log x: it rises up to 1 / e, and falls from there on."""
    if not ((x[0] == 0.0) | (x[0] > 1e-290)).all():
        raise ValueError
    ends = list[Interval]()
    for a in x:
        low, high = _minus(_times(_is(a), _log(_is(np.where(a > 0.0, a, 1.0)))))
        ends.append((np.where(a == 0.0, 0.0, low), np.where(a == 0.0, 0.0, high)))
    top = np.maximum(ends[0][1], ends[1][1])
    return np.minimum(ends[0][0], ends[1][0]), np.where((x[0] < PEAK) & (x[1] > 0.3678), np.maximum(top, PEAK), top)


def _rising(f: Callable[[Array], Interval], x: Interval) -> Interval:
    return f(x[0])[0], f(x[1])[1]


def _softplus(x: Interval) -> Interval:
    return _rising(lambda a: _plus(_is(np.maximum(a, 0.0)), _log(_plus(_is(1.0), _exp(_is(-np.abs(a)))))), x)


def _log_sum_exp(x: Interval, axis: Any) -> Interval:
    top = x[1].max(axis=axis, keepdims=True)
    found = _log(_sum(_exp(_plus(x, _is(-top))), axis))
    return _plus(found, _is(top.reshape(found[0].shape)))


def _huber(x: Interval, M: float) -> Interval:
    """x^2 up to M, and 2 M |x| - M^2 from there on."""

    def at(a: Array) -> Interval:
        inner, tail, off = _square(_is(a)), 2 * M * a - M * M, 4 * EPS * (2 * M * a + M * M)
        return np.where(a <= M, inner[0], tail - off), np.where(a <= M, inner[1], tail + off)

    return _rising(at, _abs(x))


def _relative(x: Interval, y: Interval) -> Interval:
    """x log(x / y)."""
    return _minus(_plus(_entropy(x), _times(x, _log(y))))


def _norm(x: Interval, p: Fraction, axis: Any) -> Interval:
    return _power(_sum(_power(x if p < 1 else _abs(x), p), axis), 1 / p)


def _form(x: Interval, P: Any) -> Interval:
    S = sp.csr_array(P)
    if abs(S - S.T).max() > 0.0:
        raise ValueError
    middle = (x[0] + x[1]) / 2.0
    radius = upwards(np.maximum(x[1] - middle, middle - x[0]), 2)
    value, off = quadratic(S, Pair(middle.ravel(), 0.0 * middle.ravel(), radius.ravel()))
    return _wide(np.asarray(2.0 * (value - off)), np.asarray(2.0 * (value + off)))


def _mean(e: Any, x: Interval) -> Interval:
    """The geometric mean with weights p, which CVXPY divides by their sum."""
    p = np.asarray(e.p, float)
    if e.axis is not None or p.size != x[0].size or (x[0] < 0.0).any():
        raise ValueError
    logs = _log((x[0].ravel(order="F"), x[1].ravel(order="F")))
    return _exp(_scaled(_sum(_times(logs, _is(p))), 1 / sum(map(Fraction, p.tolist()), Fraction(0))))


def _exponent(e: Any) -> Fraction:
    return Fraction(float(e.p.value if hasattr(e.p, "value") else e.p))


Atom = Callable[..., Interval]
ATOMS: dict[str, Atom] = {
    "abs": lambda _, x: _abs(x),
    "maximum": lambda _, *x: (reduce(np.maximum, [a[0] for a in x]), reduce(np.maximum, [a[1] for a in x])),
    "minimum": lambda _, *x: (reduce(np.minimum, [a[0] for a in x]), reduce(np.minimum, [a[1] for a in x])),
    "max": lambda e, x: (x[0].max(axis=e.axis), x[1].max(axis=e.axis)),
    "min": lambda e, x: (x[0].min(axis=e.axis), x[1].min(axis=e.axis)),
    "norm1": lambda e, x: _sum(_abs(x), e.axis),
    "norm_inf": lambda e, x: (_abs(x)[0].max(axis=e.axis), _abs(x)[1].max(axis=e.axis)),
    "quad_over_lin": lambda e, x, y: _over(_sum(_square(x), e.axis), y),
    "huber": lambda e, x, *_: _huber(x, float(e.M.value)),
    "exp": lambda _, x: _exp(x),
    "log": lambda _, x: _log(x),
    "log1p": lambda _, x: _log(_plus(x, _is(1.0))),
    "entr": lambda _, x: _entropy(x),
    "rel_entr": lambda _, x, y: _relative(x, y),
    "kl_div": lambda _, x, y: _plus(_relative(x, y), _plus(y, _minus(x))),
    "logistic": lambda _, x: _softplus(x),
    "log_sum_exp": lambda e, x: _log_sum_exp(x, e.axis),
    "QuadForm": lambda e, x, _: _form(x, e.args[1].value),
    "sum_largest": lambda e, x: _sum((np.sort(x[0], axis=None)[-e.k :], np.sort(x[1], axis=None)[-e.k :])),
    **dict.fromkeys(("Power", "PowerApprox"), lambda e, x: _power(x, _exponent(e))),
    **dict.fromkeys(("Pnorm", "PnormApprox"), lambda e, x: _norm(x, _exponent(e), e.axis)),
    **dict.fromkeys(("GeoMean", "GeoMeanApprox"), _mean),
}
# Their values are not followed; what their cones say is what they are.
BY_CONES = "cumsum lambda_max lambda_sum_largest log_det MatrixFrac normNuc sigma_max special_index"


def exactly_stored(e: Any) -> bool:
    """True where CVXPY's cones say exactly what an atom does: its exponent may be rounded to one that cones know, and
    x has no sign there just where the numerator is a power of two; of `QuadForm` see `graphreg.conic.formula`."""
    name = type(e).__name__
    if name == "PowerApprox":
        p = Fraction(e.p_used)
        return p == _exponent(e) and (p <= 1 or (p % 2 == 0) == (p.numerator & (p.numerator - 1) == 0))
    if name == "PnormApprox":
        return Fraction(e.p) == Fraction(e.original_p)
    if name == "GeoMeanApprox":
        p = list(map(Fraction, np.asarray(e.p, float).tolist()))
        return [w * sum(p) for w in e.w] == p and len(p) > 1  # of one entry the sign is free
    if name in ("sum_largest", "lambda_sum_largest"):  # of more than there are the cones say that it is -inf
        return e.k <= (e.args[0].size if name == "sum_largest" else e.args[0].shape[0])
    return name in BY_CONES.split() or (name in ATOMS and name not in ("Power", "Pnorm", "GeoMean"))


def value(e: Any, *args: Interval) -> Interval:
    """The least and greatest values of an atom.

    Raises
    ------
    ValueError
        Where nothing is known of it.
    """
    with np.errstate(all="ignore"):
        low, high = ATOMS[type(e).__name__](e, *args)
    return np.reshape(low, e.shape), np.reshape(high, e.shape)

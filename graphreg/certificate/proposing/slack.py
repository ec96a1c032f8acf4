"""How far prices and flows may move inside their domains, as rough as it may be: nothing that is proved rests on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import breadth_first_order, maximum_bipartite_matching
from ...form import flows_without_choice
from ...terms import Array
from ..kernel.arithmetic import EPS
from ..kernel.system import Prices, System

ROOMY = 1e-4  # of a domain at scale 1
HARDLY = 1e-7  # of the largest flow: none


@dataclass(frozen=True)
class Slack:
    """Of each variable how far it may move either way, and its weight in least squares; 0 where it is to stay."""

    room: Array
    weight: Array

    @staticmethod
    def of(system: System, v: Array, *, flows: bool = True, rough: bool = False) -> Slack:
        """At a point near the domains; without ``flows`` these are taken to be 0. Weights that are ``rough`` are mostly
        the same at points that are not far from each other."""
        room, weight = np.zeros(system.size), np.zeros(system.size)
        for one in (*system.prices, *system.flows):
            s = one.scale[:, None]
            if isinstance(one, Prices):
                depth = _depth(one, one.taken(v) / s)
            else:
                depth = one.penalty.domain.slacks(one.taken(v) / s if flows else np.zeros((1, one.shape[1])))
            depth = np.maximum(np.nan_to_num(depth, nan=0.0, posinf=np.inf), 0.0)
            np.multiply(s, depth, out=one.taken(room))
            if rough:  # all where there is room, little where there is hardly any
                depth = np.select([depth > ROOMY, depth > 0.0], [1.0, ROOMY], 0.0)
            np.multiply(s, np.minimum(depth, 1.0) ** 2, out=one.taken(weight))
        return Slack(room, weight)


def without_dust(system: System, v: Array, size: float = EPS) -> Array:
    """A point whose prices are 0 where they are nearer to it than ``size``, so that rounding moves them out, and it is
    an end of their domain: as at nodes whose hinges all are 0."""
    v = v.copy()
    for one in system.prices:
        a, s = one.taken(v), one.scale[:, None]
        a[(np.abs(a) < size * s) & (_depth(one, a / s) < size)] = 0.0
    return v


def determined(system: System, out: Array) -> Array:
    """The prices and flows that balance determines to be 0 where some ``out`` of them are, whatever the numbers in its
    equations are, (V,): of a largest matching between both, no alternating path leads there from one without a partner
    (Dulmage and Mendelsohn, Canad. J. Math. 10, 1958)."""
    out = out.copy()
    A = sp.csr_array(system.kind.B)[:, ~out]
    partner, V = maximum_bipartite_matching(A, perm_type="column"), A.shape[1]  # of each equation
    alone = np.setdiff1d(np.arange(V), partner)
    paired = sp.coo_array(A[partner >= 0])
    start = np.concatenate([paired.col, np.full(len(alone), V)])
    end = np.concatenate([partner[partner >= 0][paired.row], alone])
    paths = sp.csr_array((np.ones(len(start)), (start, end)), shape=(V + 1, V + 1))
    found = np.ones(V + 1, dtype=bool)
    found[breadth_first_order(paths, V, return_predecessors=False)] = False
    out[~out] = found[:V]
    return out


def without_flow(system: System, v: Array | None = None) -> Array:
    """The flows that balance determines to be 0 by their signs, (V,); also those that must keep a sign and are hardly
    more than 0 at a point."""
    out, still = np.zeros(system.size, dtype=bool), flows_without_choice(system.form)
    for one, found in zip(system.flows, still or (), strict=False):
        if one.mix is not None:  # other variables than flows
            continue
        one.taken(out)[:] = found
        if v is not None:
            u = np.abs(one.taken(v))
            none = one.penalty.domain.slacks(np.zeros((1, one.shape[1]))) == 0.0
            one.taken(out)[:] |= none & (u <= HARDLY * u.max(initial=0.0))
    return out


def held_first(system: System) -> list[Array]:
    """The variables that are held, in the order in which that is tried: mixed ones, and then none."""
    mixed = np.concatenate([np.zeros(0, dtype=bool), *(np.full(one.size, one.mixed) for one in system.summands)])
    return [mixed, np.zeros_like(mixed)][: 1 + int(mixed.any())]


def _depth(one: Prices, b: Array) -> Array:
    """How far prices at scale 1 are from the ends of their domain."""
    y = one.block.y
    low, high = (np.broadcast_to(x, one.block.offset.shape) for x in one.block.loss.domain(y))
    with np.errstate(invalid="ignore"):
        depth = np.minimum(b - one.reduced(low), one.reduced(high) - b)
        if one.own is None:
            return depth
        own, last = np.asarray(one.own)[:, None], -b.sum(axis=1, keepdims=True)
        ends = [np.take_along_axis(x, own, axis=1) for x in (low, high)]
        return np.minimum(depth, np.minimum(last - ends[0], ends[1] - last))

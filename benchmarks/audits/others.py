"""Algorithms of other packages, as they are: pip install pyunlocbox pyproximal odl

Each adapter gives the package the proxes and gradients of a problem, and yields the points that its solver reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import graphreg as gr

from .reading import Array, begin, parts_of


def pyunlocbox_mlfbf(problem: gr.Problem, start: Any = None, seed: Any = None) -> Iterator[tuple[Array, Array]]:
    """The forward-backward-forward method of pyunlocbox."""
    from pyunlocbox import functions, solvers

    p = parts_of(problem)
    nothing, edges, losses = functions.dummy(), functions.func(), functions.func()
    edges._prox = lambda z, step: p.penalty.prox(z, step * p.weight)
    losses._grad = p.gradient
    step = 0.99 / (p.oracles.smoothness.max() + np.sqrt(p.norm))
    solver = solvers.mlfbf(L=p.K, step=step)
    solver.pre([nothing, edges, losses], begin(p, start))
    while True:
        solver.algo(None, 0)
        yield solver.sol.copy(), solver.dual_sol.copy()


def pyproximal_primal_dual(problem: gr.Problem, start: Any = None, seed: Any = None) -> Iterator[tuple[Array, Array]]:
    """The primal-dual method of pyproximal."""
    import pylops
    from pyproximal import ProxOperator
    from pyproximal.optimization.cls_primaldual import PrimalDual

    class Prox(ProxOperator):
        def __init__(self, prox: Callable[[Array, float], Array]) -> None:
            super().__init__()
            self._of = prox

        def __call__(self, x: Array) -> float:
            return 0.0  # only ever printed

        def prox(self, x: Array, tau: float) -> Array:
            return self._of(x.reshape(-1, d), tau).ravel()

    p = parts_of(problem)
    d, step = p.shape[1], 0.99 / np.sqrt(p.norm)
    losses, edges = Prox(p.prox), Prox(lambda z, tau: p.penalty.prox(z, tau * p.weight))
    solver = PrimalDual()
    K = pylops.MatrixMult(np.kron(p.K, np.eye(d)))
    state = solver.setup(losses, edges, K, begin(p, start).ravel(), step, step, gfirst=False)
    while True:
        state = solver.step(*state)
        yield state[0].reshape(p.shape), state[2].reshape(-1, d)


def odl_pdhg(problem: gr.Problem, start: Any = None, seed: Any = None) -> Iterator[tuple[Array, Array]]:
    """The primal-dual hybrid gradient method of ODL, a round at a time."""
    import odl

    class Prox(odl.Operator):
        def __init__(self, space: Any, prox: Callable[[Array], Array]) -> None:
            super().__init__(space, space)
            self._of = prox

        def _call(self, x: Any) -> Array:
            return self._of(x.asarray().reshape(-1, d)).ravel()

    p = parts_of(problem)
    d, step = p.shape[1], 0.99 / np.sqrt(p.norm)
    K = odl.MatrixOperator(np.kron(p.K, np.eye(d)))
    make = odl.functionals.simple_functional
    losses = make(K.domain, prox=lambda tau: Prox(K.domain, lambda v: p.prox(v, tau)))
    edges = make(K.range, convex_conj_prox=lambda sigma: Prox(K.range, lambda v: p.dual_prox(v, sigma)))
    w, u = K.domain.element(begin(p, start).ravel()), K.range.zero()
    ahead = w.copy()
    while True:
        odl.solvers.pdhg(w, losses, edges, K, 1, step, step, x_relax=ahead, y=u)
        yield w.asarray().reshape(p.shape).copy(), u.asarray().reshape(-1, d).copy()


OTHERS = {pyunlocbox_mlfbf: "edges", pyproximal_primal_dual: "edges", odl_pdhg: "edges"}


def installed() -> dict[Callable[..., Any], str]:
    """Those whose packages are here."""
    return {each: kind for each, kind in OTHERS.items() if find_spec(each.__name__.partition("_")[0])}

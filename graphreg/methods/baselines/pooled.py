"""One model for all nodes, exactly."""

from __future__ import annotations

from dataclasses import dataclass

from ...form import Form
from ...oracles import without_prox
from ...running import AbstractIteration
from ..splitting.admm import ADMM
from ._baseline import AbstractBaseline
from ._servers import OneServer


@dataclass(frozen=True)
class Pooled(OneServer, AbstractBaseline):
    """One model for all nodes: ``minimise sum_i f_i(w) + the node penalties at w``; edges between nodes are dropped.

    The fit of all data in one place, found without moving them: consensus `ADMM` between the nodes and a server.

    Examples
    --------
    >>> run = problem.solve(gr.Pooled(), gap=1e-6)
    >>> run.table().round(2)
          rain  temp
    node
    a     0.11 -0.07
    b     0.11 -0.07
    c     0.11 -0.07
    d     0.11 -0.07
    """

    aim = "the fit of one model to all nodes"
    needs = "losses that are smooth or piecewise linear; it drops the edges between nodes"
    sends = (
        "nothing across the edges; every node sends the server its over-relaxed parameters, and gets back the server's"
    )

    def missing(self, form: Form) -> tuple[str, ...]:
        return without_prox(form)

    @property
    def iteration(self) -> AbstractIteration:
        return ADMM()

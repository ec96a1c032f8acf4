"""Edges whose flows are given: what flows take from the nodes, and how far they and parameters are from optimal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...form import EdgeBlock
from ...network import Passes, kernels
from ...terms import Array
from ...terms.penalties import AbstractNorm


@dataclass(frozen=True)
class GivenEdges:
    """A block of edges and its flows, inside their domains; ``passes`` where compiled code takes it."""

    edge: EdgeBlock
    u: Array
    passes: Passes | None

    @staticmethod
    def of(edge: EdgeBlock, u: Array, fast: bool) -> GivenEdges:
        """Compiled where that is ``fast``, and can be."""
        compiled = kernels() if fast else None
        passes = None if compiled is None else compiled.edge_passes(edge, u.shape[1])
        return GivenEdges(edge, edge.clip(u) if passes is None else u, passes)

    def pull(self, g: Array) -> float:
        """K'u is added to g (n, d); and sum c phi*(u / c)."""
        if self.passes is not None:
            self.passes.pull(self.u, g)
            return 0.0
        self.edge.add_adjoint(self.u, g)
        return 0.0 if isinstance(self.edge.penalty, AbstractNorm) else float(self.edge.conjugates(self.u).sum())

    def residual(self, w: Array) -> tuple[float, float]:
        """sum c phi(z), and the sum of c phi(z) - <u, z>, z = Kw - center."""
        if self.passes is not None:
            return self.passes.residual(w, self.u)
        z = self.edge.difference(w)
        value = float(self.edge.weight @ self.edge.penalty.value(z))
        return value, value - float(np.vdot(self.u, z))

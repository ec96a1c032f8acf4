"""The point of a certificate made exact: v + Rx with B(v + Rx) = 0, in rationals.

Prices and flows v that balance up to rounding, and R, which takes up what is left, are those of the theorem by which
bounds are made (see `graphreg.certificate.kernel.balance`); they are doubles, and so rational. Along trees R carries
what is left of every equation to a root: there I - BR is nilpotent, and x a finite sum. At roots R names the prices
that answer for the totals of trees, as floats have them; there one small system is solved, for as many of these prices
as there are roots, so that few numbers are more than doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...errors import ProofError
from ...inputs import components_of, groups_of
from ...terms import Array
from ...verify import rational
from ..proposing.plan import Plan, Planner
from ..proposing.slack import Slack
from .point import ExactPoint
from .statement import exact, nearest, solve


@dataclass
class Conserver:
    """Balances one point exactly."""

    point: ExactPoint
    planner: Planner
    slack: Slack
    plan: Plan

    def __call__(self) -> None:
        """`ProofError` where the balance is not found."""
        self._push()
        if any(self.point.rest):
            for roots, variables in self._coupled():
                if any(self.point.rest[i] for i in roots):
                    self._answer(roots, variables)
            self._push()
        left = next((i for i, x in enumerate(self.point.rest) if x), None)
        if left is not None:
            amount = nearest(self.point.rest[left])
            raise ProofError(f"{self._name(left)} keeps {amount:.2g}, and has no independent prices with room")

    @cached_property
    def _of_equations(self) -> Any:
        """R, by equations."""
        return sp.csc_array(self.plan.answers.R)

    def _push(self) -> None:
        """Move what is left at every equation to the root of its tree: x by substitution, the deepest first."""
        tree, R, point = self.plan.tree, self._of_equations, self.point
        for i in np.argsort(-tree.depth, kind="stable").tolist():
            if tree.arc[i] >= 0 and point.rest[i]:
                point.move(int(R.indices[R.indptr[i]]), -point.rest[i] * exact(R.data[R.indptr[i]]))

    # ---- the totals of trees -----------------------------------------------------------------------------------------
    @cached_property
    def _totals(self) -> dict[int, dict[int, Any]]:
        """Of each variable that answers at roots what one unit more adds to the totals of trees: (root, amount)."""
        tree, R = self.plan.tree, self._of_equations
        roots = np.flatnonzero((tree.arc < 0) & self.plan.kept)
        root = dict(zip(tree.group[roots].tolist(), roots.tolist(), strict=True))
        some = np.unique(R[:, roots].indices)
        out: dict[int, dict[int, Any]] = {}
        for j in some[np.isin(some, self.planner.others)].tolist():
            total: dict[int, Any] = {}
            for i, x in self.point.cells(j):
                if (at := root.get(int(tree.group[i]))) is not None:
                    total[at] = total.get(at, rational(0)) + x
            out[j] = total
        return out

    def _coupled(self) -> list[tuple[list[int], list[int]]]:
        """Roots that share variables, and these."""
        variables = np.array(list(self._totals), dtype=int)
        pairs = [(i, j) for j, total in self._totals.items() for i in total]
        i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
        roots, at = np.unique(i, return_inverse=True)
        label = components_of(at, len(roots) + np.searchsorted(variables, j), len(roots) + len(variables))[1]
        each = (groups_of(x, int(label.max(initial=-1)) + 1) for x in np.split(label, [len(roots)]))
        return [(roots[some].tolist(), variables[mine].tolist()) for some, mine in zip(*each, strict=True)]

    def _answer(self, roots: list[int], variables: list[int]) -> None:
        """Cancel the totals of coupled trees by as many variables: heavy ones near roots, where few flows follow."""
        zero, depth = rational(0), self.plan.tree.depth
        A = np.array([[nearest(self._totals[j].get(i, zero)) for j in variables] for i in roots])
        far = np.array([max(int(depth[i]) for i, _ in self.point.cells(j)) for j in variables])
        columns = _independent(A * (np.sqrt(self.slack.weight[variables]) / (1.0 + far)))
        if len(columns) < len(roots):  # the others follow from as many, or are left
            roots = [roots[g] for g in _independent(A[:, columns].T)]
        chosen = [variables[c] for c in columns]
        try:
            moves = solve(
                [[self._totals[j].get(i, zero) for j in chosen] for i in roots], [-self.point.rest[i] for i in roots]
            )
        except ZeroDivisionError:
            raise ProofError(f"the prices at {self._name(roots[0])} are dependent") from None
        for j, amount in zip(chosen, moves, strict=True):
            self.point.move(j, amount)

    def _name(self, i: int) -> str:
        """A group by one of its coordinates."""
        form = self.point.system.form
        node, column = divmod(i, form.d)
        return f"the group of {form.space.names[column]!r} at the node {form.labels[node]!r}"


def _independent(A: Array) -> list[int]:
    """As many columns as there are rows that are independent, by a QR factorisation with pivoting."""
    from scipy.linalg import qr

    size = np.abs(A).max(axis=1, initial=0.0)[:, None]
    found: Any = qr(A / np.where(size > 0, size, 1.0), mode="r", pivoting=True)
    return found[1][: len(A)].tolist()

"""The certificate: what is known of an answer, and of each sample, node and edge of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.display import Html, Shown, details, facts, inside, sentence, title
from ..base.escaping import visible
from ..form import DualPoint, Form
from ..terms import Array
from .common_model.best_common import floor
from .convexity import strong_convexity

if TYPE_CHECKING:
    import pandas as pd

    from .kkt import KKT


OWN_TERMS = "own terms"  # the scope of bounds that rest on what the user wrote
UNDERFLOWN = 1e-298  # a hundred times what is added to each value, see `terms.bounds`


def relative(gap: float, primal: float, dual: float, floor: float) -> float:
    """gap / max(|P|, |Q|, floor) with the floor of `common`, 1e-3 P_common: scaling the objective or the data, or
    shifting the targets of a model with an intercept, changes nothing. 0 for less than bounds add where values may have
    underflowed."""
    if 0.0 <= gap <= UNDERFLOWN:
        return 0.0
    yardstick = max(abs(primal), abs(dual), floor)
    return gap / yardstick if yardstick > 0 else (0.0 if gap == 0 else float("inf"))


def relative_in_words(certificate: Certificate, digits: int = 3) -> str:
    """The relative gap, with what it is relative to where that is not the larger of the bounds, by which a checker of
    proofs measures."""
    size = max(abs(certificate.primal), abs(certificate.dual))
    least = floor(certificate.form, size)
    scale = f" of {least:.3g}, by the best common model" if size < least else ""
    return f"{certificate.relative_gap:.{digits}g}{scale}"


def flow_column(flows: Iterable[Array]) -> tuple[str, list[Array]]:
    """The heading and the numbers of flows in a table: "flow", from tail to head, where each is one number; else their
    Euclidean "length"."""
    flows = list(flows)
    if all(u.shape[1] == 1 for u in flows):
        return "flow", [u[:, 0] for u in flows]
    return "length", [np.linalg.norm(u, axis=1) for u in flows]


@dataclass(frozen=True, repr=False)
class Certificate(Shown):
    """``dual <= optimum <= primal``, by weak duality at explicitly feasible points.

    Attributes
    ----------
    primal : float
        P at ``w``, which satisfies every constraint, plus ``rounding``.
    dual : float
        Q at ``dual_point``, which is conserved and inside every domain, less ``charge - rounding``.
    charge : float
        What the proof of the bounds cost: Q and P as they were computed against what was proved of both; already
        subtracted from ``dual`` and added to ``primal``.
    scope : str
        What the certificate is valid for: ``"global"``; ``"own terms"`` where it rests on value and conjugate of terms
        that the user wrote, with ``note`` naming them; or ``"none"`` with ``note`` saying why.
    w : (n, d) array
        The feasible primal point, latent nodes included.
    dual_point : DualPoint
        Its flows and prices.
    rounding : float
        The part of the charge in ``primal``: how far off P(w) may be as it was computed. It counts where coefficients
        are huge and predictors moderate.
    spread : tuple of arrays
        Shaped like the flows: an exactly conserved dual point lies within ``dual_point.flows +- spread``.
    contradiction : str
        How a term of the user's breaks a law that bounds rest on, where one was found to: no bound is valid then.

    Examples
    --------
    >>> bounds = solution.certificate
    >>> bounds.dual <= bounds.primal, bounds.gap == bounds.primal - bounds.dual
    (True, True)
    >>> bounds.holds(1e-6)
    True
    """

    primal: float
    dual: float
    charge: float
    scope: str
    w: Array
    dual_point: DualPoint
    form: Form
    note: str = ""
    rounding: float = 0.0
    spread: tuple[Array, ...] = ()
    contradiction: str = ""

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from the optimum."""
        return self.primal - self.dual

    @cached_property
    def relative_gap(self) -> float:
        """The gap over max(|P|, |Q|, 1e-3 P_common), P_common the objective of the best common model; where that fits
        all data, what rounding their numbers leaves takes its place (see `common`)."""
        if not np.isfinite(self.gap):
            return float("inf")
        return relative(self.gap, self.primal, self.dual, floor(self.form, max(abs(self.primal), abs(self.dual))))

    @property
    def valid(self) -> bool:
        """True where this bounds the optimum from both sides."""
        return self.scope != "none"

    def holds(self, gap: float) -> bool:
        """True where the relative gap is certified to be at most ``gap``.

        Returns
        -------
        bool

        Examples
        --------
        >>> solution.certificate.holds(1e-6)
        True
        """
        plainly = relative(self.gap, self.primal, self.dual, 0.0) <= gap  # without the floor, which costs two more sums
        return self.valid and (plainly or self.relative_gap <= gap)

    @cached_property
    def strong_convexity(self) -> float:
        """mu: the objective minus mu/2 ||w||^2 is convex; 0 where it is not strongly convex."""
        return strong_convexity(self.form)

    @property
    def distance(self) -> float:
        """sqrt(2 gap / mu), a bound of ||w - w*|| over all nodes; inf where mu = 0."""
        mu = self.strong_convexity if self.valid else 0.0
        return float(np.sqrt(2.0 * self.gap / mu)) if mu > 0 else float("inf")

    @cached_property
    def residuals(self) -> tuple[list[Array], list[Array]]:
        """Fenchel-Young residuals per sample block and per edge block; they add up to the gap but for the charge."""
        return self.form.residuals(self.w, self.dual_point)

    def per_node(self) -> pd.Series:
        """The part of the gap that the samples of each node hold, by label.

        Returns
        -------
        pandas.Series
            At least 0 each, but for rounding; with the edges' parts and the charge they add up to the gap.

        Examples
        --------
        >>> solution.certificate.per_node().index.tolist()
        ['a', 'b', 'c', 'd']
        """
        import pandas as pd

        total = np.zeros(self.form.n)
        for block, residual in zip(self.form.samples, self.residuals[0], strict=True):
            np.add.at(total, block.map.owner, residual)
        return pd.Series(total[: self.form.space.n_observed], index=pd.Index(list(self.form.space.index), dtype=object))

    def per_edge(self) -> pd.DataFrame:
        """The part of the gap that each edge holds, with its term, and its flow from tail to head or, where flows
        are no single numbers, the length of its flow.

        Returns
        -------
        pandas.DataFrame
            One row per edge, by tail and head; of rows that are no edges the tail is their key.

        Examples
        --------
        >>> len(solution.certificate.per_edge())
        3
        """
        import pandas as pd

        from ..base.tables import LabelledTable

        rows: list[tuple[Any, ...]] = []
        heading, flows = flow_column(self.dual_point.flows)
        for edge, residual, flow in zip(self.form.edges, self.residuals[1], flows, strict=True):
            plain = edge.map.edges is not None
            tails, heads = self.form.ends(edge) if plain else (self.form.keys(edge), [None] * edge.count)
            rows += zip([edge.name] * len(tails), tails, heads, residual, flow, strict=True)
        table = LabelledTable(rows, columns=["term", "tail", "head", "residual", heading])
        return table.assign(
            **{end: pd.Series([row[k] for row in rows], dtype=object) for k, end in ((1, "tail"), (2, "head"))}
        )

    def kkt(self) -> KKT:
        """The optimality conditions in numbers: what is missing of each, and at which node or edge most.

        Returns
        -------
        KKT
            ``.table`` (a DataFrame: condition by condition), ``.total``, ``.gap``, and ``.reason`` where there is none.

        Examples
        --------
        >>> found = solution.certificate.kkt()
        >>> bool(abs(found.total - found.gap) <= 1.01 * found.charge)
        True
        """
        from .kkt import kkt

        return kkt(self)

    def __repr__(self) -> str:
        if not self.valid:
            return f"<{type(self).__name__}: none; {visible(self.note, 200)}>"
        bounds = f"{self.dual:.6g} <= optimum <= {self.primal:.6g}"
        return f"<{type(self).__name__}: {bounds}, relative gap {relative_in_words(self, 2)}>"

    def _html(self) -> Iterable[Html]:
        if not self.valid:
            yield title("No certificate")
            yield sentence(self.note)
            return
        yield title(f"{type(self).__name__}: {self.dual:.10g} <= optimum <= {self.primal:.10g}")
        known: dict[str, object] = {
            "gap": f"{self.gap:.3g}, of which {self.charge:.2g} is the charge for rounding",
            "relative gap": relative_in_words(self),
        }
        if np.isfinite(self.distance):
            known["distance"] = f"at most {self.distance:.3g} from the optimal parameters, over all nodes"
            known["distance"] += self.form.space.unit
        yield facts(known | ({"note": self.note} if self.note else {}))
        yield details("the optimality conditions in numbers", inside(self.kkt()))

    def __str__(self) -> str:
        if not self.valid:
            return f"no certificate: {self.note}"
        lines = [
            f"certificate: {self.dual:.10g} <= optimum <= {self.primal:.10g}",
            f"  gap {self.gap:.3g} (relative {relative_in_words(self)}), of which rounding charge {self.charge:.2g}",
        ]
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)


def violated(bounds: Certificate, w: Array) -> Certificate:
    """The lower bound, and exactly these parameters, which violate a constraint, so that P is +inf at them."""
    broken = dict.fromkeys(edge.name for edge in bounds.form.edges if not np.isfinite(edge.values(w)).all())
    note = f"the parameters violate {', '.join(broken)}, so the objective is +inf at them"
    note = note if broken else "the objective is beyond all floats at the parameters"
    return replace(bounds, primal=np.inf, scope="none", w=w, note=note, rounding=0.0)

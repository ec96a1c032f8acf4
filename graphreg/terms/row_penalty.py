"""A penalty called on rows: the sum over the rows of c_e phi((K w)_e - b_e)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.messages import shown
from ..errors import TermError
from ..inputs import Labels
from .blocks import EdgeBlock, Lowered
from .calculus import AbstractTerm, Strength
from .maps import Matrix
from .penalties.base import AbstractOneSided, AbstractPenalty, is_equality
from .penalties.tried import moderate, refuse_uneven
from .records import IN_GRAPH, IN_ROWS, TO_GROUND, Array, Space
from .rows import NO_SIGN, AbstractRows, Made
from .sums import AbstractPenaltyTerm, check_strength

TURNS = 8  # signs of the pieces of a group that are tried


class AbstractOnRows(AbstractTerm):
    """A function that is called on rows of `graphreg.w`."""

    rows: AbstractRows
    closed = False

    @property
    def leads(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  (of the rows)
        """True where a graph or a path gives the order of the nodes."""
        return self.rows.leads

    def labels(self) -> Labels:
        return self.rows.labels()


@dataclass(frozen=True, repr=False)
class RowPenalty(AbstractPenaltyTerm, AbstractOnRows):
    """A penalty on rows: ``sum over e = 1..m of c_e phi((K w)_e - b_e)``; written ``phi(rows)``.

    K is sparse on w, b_e in R^k, and c_e >= 0, where 0 leaves a row out. Lowered, rows w_i - w_j and w_i are the edges
    that `TotalVariation` and `NodePenalty` write; all others keep their K.

    Parameters
    ----------
    penalty : Penalty
        phi. Rows without a sign, such as the differences across an undirected graph, take even ones.
    rows : AbstractRows
        Affine rows of `graphreg.w`.
    """

    penalty: AbstractPenalty
    rows: AbstractRows

    def __repr__(self) -> str:
        return f"{self.penalty!r}({self._text()})"

    def _text(self) -> str:
        """The rows by the letter that formulas have for them: r are samples."""
        letter = (re.findall(r"(?<=\))_[eit]\b", self.rows.text()) or ["_e"])[0]
        return re.sub(r"(?<=[)b])_r", letter, self.rows.text())

    def lower(self, space: Space, strength: Strength) -> Lowered:
        name = f"{self.penalty.called()}({self._text()})"
        each = [made for made in self.rows.each(space) if made.shape[1]]  # rows of no numbers are constants, 0
        return Lowered(edges=tuple(self._block(made, strength, space, name) for made in each))

    def _block(self, made: Made, strength: Strength, space: Space, name: str) -> EdgeBlock:
        check_strength(self.penalty, strength, bool((made.c != 1.0).any()), name, "leave the weights out")
        k = made.shape[1]
        phi = self.penalty.acting_on(k)
        if made.signless:
            self._check_signs(phi, made, name)
        if (
            made.edges is not None
            and not (made.signless or made.edges.ground)
            and (made.b.any() or not _is_even(phi, k))
        ):
            made = replace(made, edges=None)  # arrows that have a direction
        b = made.b
        made = made.taken(np.flatnonzero(made.c) if made.edges else with_ends(made, lambda r: phi.value(-b[r]), name))
        rows = made.edges or matrix_of(made, space, self.rows.unshifted())
        if made.edges is None and is_equality(phi, k):
            raise TermError(
                f"{name}: equations hold exactly at nodes and across undirected graphs, others to rounding only, so "
                "that nothing could be certified; say that nodes are equal by Zero()(w.across([(i, j)])) or "
                "Consensus([(i, j)]), write others with Box(-e, e) for a small e, or eliminate a node"
            )
        role = IN_ROWS if made.edges is None else TO_GROUND if made.edges.ground else IN_GRAPH
        name = name.replace("(w_i - b_e)", "(w_i - c_i)") if role == TO_GROUND else name  # the letter of formulas
        return EdgeBlock(phi, strength, rows, made.c, made.b if made.b.any() else None, role, name)

    def _check_signs(self, phi: AbstractPenalty, made: Made, name: str) -> None:
        """Rows of an undirected graph may as well be their negatives, and the pieces of a group each on its own."""
        if isinstance(phi, AbstractOneSided):
            raise TermError(f"{name}: {phi.called()} may be one-sided, and {NO_SIGN}")
        k, turns = made.shape[1], np.random.default_rng(0)
        refuse_uneven(phi.called(), phi.value, k)
        z = moderate(k)
        for _ in range(TURNS if made.pieces > 1 else 0):
            signs = np.repeat(turns.choice([-1.0, 1.0], size=made.pieces), k // made.pieces)
            if not np.allclose(phi.value(z), phi.value(signs * z), rtol=1e-6, equal_nan=True):
                raise TermError(f"{name}: {phi.called()} mixes the rows of a group, and {NO_SIGN}")


def _is_even(phi: AbstractPenalty, k: int) -> bool:
    """True of a penalty that takes differences of any sign."""
    try:
        refuse_uneven(phi.called(), phi.value, k)
    except TermError:
        return False
    return not isinstance(phi, AbstractOneSided)


def on_rows(penalty: AbstractPenalty, rows: Any) -> RowPenalty:
    """The term that a penalty called on rows is."""
    if isinstance(rows, AbstractRows):
        return RowPenalty(penalty, rows)
    raise TermError(f"{penalty.called()} is called on rows of gr.w, such as gr.w.across(graph), got {shown(rows)}")


def matrix_of(made: Made, space: Space, text: str) -> Matrix:
    """The map of rows of any kind."""
    K = sp.csr_array(made.K, copy=True)
    K.sum_duplicates()  # in order, which whoever works with it may ask for
    return Matrix(K, made.shape[1], space.n_observed, made.keys, text, made.owners)


def with_ends(made: Made, value_of: Callable[[Array], Array], name: str) -> Array:
    """The rows that have a weight and depend on w; a constant, of which ``value_of`` gives the values, leaves the
    model, where it is 0."""
    m, k = made.shape
    made.K.eliminate_zeros()  # of sums that cancel: no ends
    filled = np.bincount(made.K.tocoo().coords[0] // k, minlength=m) > 0
    value, constant = np.zeros(m), np.flatnonzero(~filled & (made.c > 0.0))
    value[constant] = made.c[constant] * value_of(constant)
    if value.any():
        r = int(np.argmax(value != 0.0))
        what = "can never hold" if np.isinf(value[r]) else f"is the constant {value[r]:.6g}"
        raise TermError(f"the row {made.keys[r]!r} of {name} does not depend on w and {what}; give it the weight 0")
    return np.flatnonzero(filled & (made.c > 0.0))

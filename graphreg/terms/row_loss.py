"""A loss called on rows: the sum over the rows of s_r l((K w)_r - b_r; y_r)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..base.messages import count
from ..errors import DataError, TermError
from ..inputs import NodeData, raw
from .blocks import Lowered, SampleBlock
from .calculus import Strength
from .losses.loss import AbstractLoss
from .losses.samples import at_rows
from .records import Array, Coordinate, Space
from .row_penalty import AbstractOnRows, matrix_of, with_ends
from .rows import NO_SIGN, AbstractRows, Made, by_key

GIVEN = "a target for each row, one for all, or a mapping by node or edge"


@dataclass(frozen=True, repr=False)
class RowLoss(AbstractOnRows):
    """A loss of rows: ``sum over r = 1..m of s_r l((K w)_r - b_r; y_r)``; written ``Loss(rows, y)``.

    A row may see any number of nodes, so there is none to average over: the scale is "sum", s_r the weight of the row,
    unless a number is given.

    Parameters
    ----------
    kind : type of AbstractLoss
        l. Losses of one predictor take each number of a row for one; of a vector they take rows of as many numbers.
    rows : AbstractRows
        Affine rows of `graphreg.w`; their offsets b are those of the predictors, their weights those of the samples.
    y : array, number or mapping
        The targets, in the order of the rows, one for all, or by node or edge.
    options : mapping
        Of the loss.
    """

    kind: type[AbstractLoss]
    rows: AbstractRows
    y: Any
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.options.get("scale") == "mean":
            raise TermError(
                f"{self.name}: a row has no node whose samples a mean would be of; leave scale out, or give a number"
            )
        self.loss_of(self._given())  # refuses what it cannot use

    @property
    def name(self) -> str:
        return f"{self.kind.__name__}({self.rows.text()})"

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"{self.kind.__name__}({self.rows.text()}, y{options})"

    def loss_of(self, y: Array, keys: Sequence[Hashable] = ()) -> AbstractLoss:
        """The loss on samples of which each is a node of its own, named by its row."""
        y = y if self.kind.plain else y.ravel()
        names = keys if len(set(keys)) == len(y) else range(len(y))
        X = None if self.kind.plain else np.ones((len(y), 1))
        return self.kind(NodeData.from_arrays(X, y, names), **{"scale": "sum"} | dict(self.options))

    def coordinates(self) -> tuple[Coordinate, ...]:
        """The coordinates of w where no data name them: as many as the loss has predictors."""
        loss = self.loss_of(self._given())
        return loss.data.targets if (k := _width(loss)) == 1 else tuple(f"y{j}" for j in range(k))

    def lower(self, space: Space, strength: Strength) -> Lowered:
        each = self.rows.each(space)
        if len(each) > 1:
            raise TermError(f"{self.name}: a loss is called on rows of one length")
        made = each[0]
        if made.signless:
            raise TermError(f"{self.name}: {NO_SIGN}")
        (m, k), y = made.shape, self._given(made.keys)
        if _width(self.loss_of(y)) == 1:
            made, y = _one_by_one(made), np.repeat(y, m * k) if y.size == 1 else y.ravel()
        loss = self.loss_of(y, made.keys)
        if (len(y), _width(loss)) != made.shape:
            raise DataError(
                f"{self.name} has {count(m, 'row')} of {count(k, 'number')}, and y is of {len(y)} with {_width(loss)}; "
                f"give {GIVEN}"
            )
        offset = 0.0 - made.b.reshape(loss.design()[1].shape)
        kept = with_ends(made, lambda r: loss.value(offset[r], loss.targets()[r]), self.name)
        made, loss = made.taken(kept), at_rows(loss, kept)
        loss = replace(loss, data=replace(loss.data, weights=made.c), **loss.coding())
        rows = matrix_of(made, space, self.rows.unshifted())
        block = SampleBlock(loss, strength, rows, loss.targets(), offset[kept], loss.scales())
        return Lowered(losses=(block,))

    def _given(self, keys: tuple[Hashable, ...] | None = None) -> Array:
        """The targets, where they are by node or edge in the order of the keys."""
        if not isinstance(self.y, Mapping):
            return self.y
        y: Mapping[Hashable, Any] = self.y
        return raw([*y.values()] if keys is None else by_key(y, keys, f"y of {self.name}"))


def _width(loss: AbstractLoss) -> int:
    """The number of predictors of a sample."""
    offset = loss.design()[1]
    return 1 if offset.ndim == 1 else offset.shape[1]


def _one_by_one(made: Made) -> Made:
    """Each number of a row as a row."""
    k = made.shape[1]
    owners = None if made.owners is None else np.repeat(made.owners, k)
    keys = made.keys if k == 1 else tuple((key, j) for key in made.keys for j in range(k))
    return replace(made, b=made.b.reshape(-1, 1), c=np.repeat(made.c, k), keys=keys, edges=None, owners=owners)


def on_rows(kind: type[AbstractLoss], rows: AbstractRows, y: Any = None, *given: Any, **options: Any) -> RowLoss:
    """The term that a loss called on rows is; what follows the targets are options of the loss, in their order."""
    names = [each.name for each in fields(kind) if each.name not in ("data", "scale")]
    if y is None or len(given) > len(names):
        written = ", ".join(["rows", "y", *names])
        raise TermError(f"a loss of rows takes rows, targets and its options: {kind.__name__}({written})")
    weights = options.pop("weights", None)
    options |= dict(zip(names, given, strict=False))
    y = y if isinstance(y, Mapping) else raw(y if np.ndim(y) else [y])
    return RowLoss(kind, rows if weights is None else rows.weighted(weights), y, options)

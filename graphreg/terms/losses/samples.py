"""The samples of a loss as a term of a model: which node, which predictor, which target (and how that
is coded), which scale."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np

from ...base.messages import look_alike, missing_entries, shown, unknown_labels
from ...base.shortcuts import shortcut
from ...checks import check_fields, is_number, is_switch
from ...errors import DataError, TermError
from ...inputs import NodeData, change, renewed
from ..calculus import AbstractTerm, Model, positive
from ..records import Array, Coordinate
from ..rows import AbstractRows


def numeric(target: Array, loss: str) -> Array:
    """Numeric targets as floats; text and other objects are refused."""
    _check_numbers(target, f"{loss} takes numeric targets")
    return np.asarray(target, dtype=float)


def signs(target: Array, loss: str) -> Array:
    """Binary targets, coded {0, 1}, {-1, 1} or as booleans, as -1 and 1; anything else is refused."""
    wanted = f"{loss} takes targets coded {{0, 1}}, {{-1, 1}} or as booleans"
    remedy = "; compare the column with the class that counts as 1"
    if len(set(np.ravel(target).tolist())) > 2:
        remedy += ", or take another loss: MultinomialLoss of more classes, SquaredLoss of numbers"
    _check_numbers(target, wanted, remedy)
    coded = np.asarray(target, dtype=float)
    values = np.unique(coded)
    if np.isin(values, (0.0, 1.0)).all():
        return np.where(coded == 1.0, 1.0, -1.0)
    if np.isin(values, (-1.0, 1.0)).all():
        return coded
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", ..." if len(values) > 5 else "")
    raise DataError(f"{wanted}, got the values {shown}{remedy}")


def two_classes(target: Array) -> Array:
    """The two classes as binary data code them, also where all samples are of one class."""
    values = np.unique(target)
    return values if len(values) == 2 else np.array([-1 if values[0] == -1 else 0, 1]).astype(target.dtype)


def amounts(target: Array, loss: str, relation: str, other: str) -> Array:
    """Targets that are ">= 0" or "> 0"; what is not is for another loss."""
    coded = numeric(target, loss)
    bad = coded < 0.0 if relation == ">= 0" else coded <= 0.0
    if bad.any():
        row = int(np.argmax(bad))
        other = other if coded.min() >= 0.0 else "SquaredLoss"
        more = f" and in {bad.sum() - 1:,} more" * bool(bad.sum() > 1)
        said = f"got {coded[row]:g} in row {row}{more}; use {other}, or drop such rows"
        raise DataError(f"{loss} takes targets {relation}, {said}")
    return coded


def classes_of(target: Array) -> tuple[Hashable, ...]:
    """The distinct values of a target, sorted where they can be, else in order of appearance."""
    values = tuple(dict.fromkeys(np.ravel(target).tolist()))
    try:
        return tuple(sorted(values))
    except TypeError:
        return values


def named_classes(classes: object) -> tuple[Hashable, ...]:
    """The classes that a user names, in their order."""
    if isinstance(classes, (str, Set)) or not isinstance(classes, Iterable):
        raise TermError(f"classes must be a sequence of the values that a target takes, got {classes!r}")
    classes = tuple(classes.tolist() if isinstance(classes, np.ndarray) else classes)
    for value in classes:
        if not isinstance(value, Hashable):
            raise TermError(f"classes must be values that a target takes, got {value!r} among them")
    return classes


def one_hot(target: Array, classes: tuple[Hashable, ...], loss: str) -> Array:
    """One column per class, 1 where the target is that class."""
    index = {value: k for k, value in enumerate(classes)}
    given = np.ravel(target).tolist()
    for row, value in enumerate(given):
        if value not in index:
            hint = look_alike(value, classes)
            raise DataError(
                f"{loss} has the classes {list(classes)}, got {value!r} in row {row}{hint}; add it to classes"
            )
    coded = np.zeros((len(given), len(classes)))
    coded[np.arange(len(given)), [index[value] for value in given]] = 1.0
    return coded


def _check_numbers(
    target: Array, wanted: str, remedy: str = "; make them numbers, or use MultinomialLoss of classes"
) -> None:
    """Text (of digits, too), dates and other objects are refused."""
    if target.dtype.kind in "biuf":
        return
    values = np.ravel(target).tolist()
    wrong = [k for k, x in enumerate(values) if target.dtype.kind != "O" or not (is_number(x) or is_switch(x))]
    if wrong:  # one odd cell makes a whole column text: that is the one to be named
        k = next((k for k in wrong if not _reads_as_number(values[k])), wrong[0])
        raise DataError(f"{wanted}, got {shown(values[k])} in row {k}{remedy}")


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return True


# ---- the samples of a loss -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AbstractSamples(AbstractTerm):
    """A sum over the samples of ``data``; called with rows of `graphreg.w` instead, and their targets ``y``, the sum of
    s_r l((K w)_r - b_r; y_r) over the rows, which may see any number of nodes: ``SquaredLoss(blur @ w, y)``. The scale
    is then "sum", as there is no node to average over, and weights are ``weights=`` or those of the rows.

    Parameters
    ----------
    data : NodeData
    scale : {"mean", "sum"}, float or mapping
        The factor scale_i of a node's sum: "mean" is 1 / (sum of its sample weights), "sum" is 1; a number, or a
        number per node label.
    """

    data: NodeData
    scale: str | float | Mapping[Hashable, float] = field(default="mean", kw_only=True)
    plain: ClassVar[bool] = False  # the predictor of a sample is w_i itself
    coded: ClassVar[str] = ""  # what y_r is in the formula, where it is no number of the data

    @overload
    def __new__(  # pyright: ignore[reportOverlappingOverload]  (of rows it is another term)
        cls, data: AbstractRows, y: Any, *options: Any, **named: Any
    ) -> AbstractTerm: ...
    @overload
    def __new__(cls, *args: Any, **options: Any) -> Self: ...
    def __new__(cls, *args: Any, **options: Any) -> Any:
        """The loss of data; called with rows of `graphreg.w` and targets the term that is the loss of these rows."""
        if args and isinstance(args[0], AbstractRows):
            return shortcut("Loss.on_rows")(cls, *args, **options)
        return super().__new__(cls, *args, **options)

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.data, NodeData):
            got = f"the class {self.data.__name__}" if isinstance(self.data, type) else type(self.data).__name__
            raise TermError(f"{name} takes NodeData, got {got}; see NodeData.from_frame, from_dict and from_arrays")
        check_fields(self, TermError)
        for read in (self.design, self.targets, self.scales):
            read()  # refuses what it cannot use

    def encode(self, target: Array) -> Array:
        """The targets as floats in the coding of the loss; `DataError` where they are anything else. Numbers, by
        default."""
        return numeric(target, type(self).__name__)

    def coding(self) -> dict[str, Any]:
        """The fields that say how all data are coded, where one node's do not tell."""
        return {}

    def design(self) -> tuple[Array | None, Array]:
        """The design matrix (None where the predictor of a sample is w_i itself) and the offsets."""
        if self.data.X is None or self.data.n_features == 0:
            raise DataError(f"{type(self).__name__} needs features, and the data have none; name them, or use MeanLoss")
        return self.data.X, self.data.offset

    def coordinates(self) -> tuple[Coordinate, ...]:
        """The names of the columns of w that the loss speaks of."""
        return self.data.features

    def targets(self) -> Array:
        target = self.data.y
        if target is None:
            raise DataError(f"{type(self).__name__} needs a target, and the data have none")
        if target.ndim != 1:
            columns = f"the {target.shape[1]} columns {self.data.targets}"
            raise DataError(f"{type(self).__name__} takes one target, got {columns}")
        return self.encode(target)

    def scales(self) -> Array:
        """s_r (M,), without the strength."""
        rule, weights = factors_of(self)
        if isinstance(rule, str):
            total = np.bincount(self.data.node, weights, len(self.data.labels))
            return weights / total[self.data.node] if rule == "mean" else weights.copy()
        alike = len(weights) > 0 and weights.strides == rule.strides == (0,)  # one number, however often
        return np.broadcast_to(weights[0] * rule[0], weights.shape) if alike else weights * rule


@dataclass(frozen=True)
class AbstractCounts(AbstractSamples):
    """Samples whose target counts something: numbers >= 0.

    Examples
    --------
    >>> issubclass(gr.PoissonLoss, gr.AbstractCounts)
    True
    """

    def encode(self, target: Array) -> Array:
        return amounts(target, type(self).__name__, ">= 0", "SquaredLoss")


@dataclass(frozen=True)
class AbstractTwoClasses(AbstractSamples):
    """Samples with a binary target, coded {0, 1}, {-1, 1} or as booleans; the label y is -1 or 1.

    Examples
    --------
    >>> [issubclass(each, gr.AbstractTwoClasses) for each in (gr.LogisticLoss, gr.HingeLoss, gr.MultinomialLoss)]
    [True, True, False]
    """

    coded: ClassVar[str] = "1 or -1: 1 for a target of 1, -1 for 0 or -1"

    def encode(self, target: Array) -> Array:
        return signs(target, type(self).__name__)

    def classify(self, x: Array) -> Array:
        first, second = two_classes(np.asarray(self.data.y))
        return np.where(x > 0, second, first)


# ---- the same loss on other samples ----------------------------------------------------------------------------------
Loss = TypeVar("Loss", bound=AbstractSamples)


def at_nodes(loss: Loss, labels: Collection[Hashable]) -> Loss:
    """The loss of some nodes alone, which holds the data of no other."""
    known = np.array([label in labels for label in loss.data.labels], dtype=bool)
    return at_rows(loss, known[loss.data.node])


def at_rows(loss: Loss, rows: Any) -> Loss:
    """The same loss on some rows of its data, see `NodeData.take`; a mean is over the rows that are left."""
    data = loss.data.take(rows)
    scale = {x: loss.scale[x] for x in data.labels} if isinstance(loss.scale, Mapping) else loss.scale
    return replace(loss, data=data, scale=scale, **loss.coding())


def on_data(loss: Loss, given: Any) -> Loss:
    """The same loss on other data, see `renewed`; classes are coded as before."""
    new = replace(loss, data=renewed(loss.data, given), **loss.coding())
    if new.coordinates() != loss.coordinates():
        here, there = list(new.coordinates()), list(loss.coordinates())
        raise DataError(f"the new data have the coordinates {here}, and the data before have {there}; give the same")
    return new


def factors_of(loss: AbstractSamples) -> tuple[str | Array, Array]:
    """The factors that scales are made of: the rule ("mean", "sum", or a number per sample) and the sample weights
    (M,)."""
    data, scale = loss.data, loss.scale
    if isinstance(scale, str):
        if scale not in ("mean", "sum"):
            raise TermError(f"scale must be 'mean', 'sum', a number or a mapping, got {scale!r}")
        return scale, data.weights
    if not isinstance(scale, Mapping):
        number = positive(scale, f"the scale of {type(loss).__name__}")
        return np.broadcast_to(number, len(data.node)), data.weights
    known = data.labels
    for said in (*missing_entries("scale", scale, known), *unknown_labels("scale", scale, known)):
        raise TermError(said)
    each = np.array([positive(scale[label], f"the scale of the node {label!r}") for label in data.labels])
    return each[data.node], data.weights


def updated(model: Model, data: tuple[Any, ...]) -> tuple[Model, tuple[str, ...]]:
    """The model with its losses on other data, one for each in their order (None: as before), and what changed."""
    terms, changes = list(model.terms), list[str]()
    losses = [(k, term) for k, (_, term) in enumerate(terms) if isinstance(term, AbstractSamples)]
    if not 0 < len(data) <= len(losses):
        names = ", ".join(type(loss).__name__ for _, loss in losses) or "none of data"
        raise DataError(f"update takes data for the losses of the model ({names}), one for each, got {len(data)}")
    for (k, loss), given in zip(losses, data, strict=False):
        if given is not None:
            new = on_data(loss, given)
            terms[k] = terms[k][0], new
            changes.append(f"{type(loss).__name__}: {change(loss.data, new.data)}")
    return Model(tuple(terms)), tuple(changes)

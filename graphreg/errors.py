"""The exceptions of graphreg. Every message says what is wrong, where (the smallest guilty part: a node, an edge,
a column, a sub-expression), and what to do about it.

Examples
--------
>>> try:
...     gr.Problem(gr.SquaredLoss(data) - gr.NodePenalty(gr.L1()))
... except gr.errors.GraphregError as error:
...     print(type(error).__name__)
TermError
"""

from __future__ import annotations

from typing import Any

from .base.escaping import page


class _Shown:
    """A message that a terminal shows and does not obey, whatever it names."""

    def __str__(self) -> str:
        return page(super().__str__())


class GraphregError(_Shown, Exception):
    """Base of every error that graphreg raises on purpose."""

    placed = False  # whether the message begins with the place in a model file where it comes from
    shared = False  # whether every process of a job raises it, so that one of them says it


class ModelError(GraphregError, ValueError):
    """The description of the problem is wrong."""


class ArgumentError(ModelError, TypeError):
    """An argument that a function does not have; the message says which was probably meant."""


class GraphError(ModelError):
    """A graph that cannot be used: self loops, directions, multi-edges, bad weights, no nodes, unknown labels."""


class DataError(ModelError):
    """Data that cannot be used: NaN, wrong coding, missing columns, mismatched feature counts, unknown nodes."""


class TermError(ModelError):
    """A loss, a penalty, a strength or a sum of them that is not allowed."""


class ModelFileError(ModelError):
    """A model file that cannot be read: an unknown or missing key, a value of the wrong type, a file or a column that
    is not there. The message names the file, the table and the key."""


class ConvexityError(TermError):
    """A function that is not convex, or that CVXPY cannot recognise as convex."""


class MethodError(GraphregError, ValueError):
    """A method that does not apply to the problem; ``missing`` lists each requirement that is not met."""

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


class CheckpointError(GraphregError, ValueError):
    """A checkpoint that does not fit, is damaged, or cannot be kept; ``differences`` lists what does not fit."""

    def __init__(self, message: str, differences: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.differences = differences


class SolverError(GraphregError, RuntimeError):
    """A conic solver that is unknown, not installed, or cannot take this problem."""


class SolveError(GraphregError, RuntimeError):
    """A solve that ended without an answer that can be used; ``solution`` is what there is, with its status."""

    def __init__(self, message: str, solution: Any = None) -> None:
        super().__init__(message)
        self.solution = solution


class BudgetError(GraphregError, TimeoutError):
    """Time that was used up before there was anything to give; the message says by what."""


class WorkerError(GraphregError, RuntimeError):
    """A process of a cross-validation that ended or failed; the message names the fold and the strengths at which it
    was, and ``found`` is a `CrossValidation` of the folds that are finished."""

    def __init__(self, message: str, found: Any = None) -> None:
        super().__init__(message)
        self.found = found


class MissingError(GraphregError, KeyError):
    """A key that a mapping of results does not have."""

    def __str__(self) -> str:
        return page(Exception.__str__(self))  # that of a KeyError is its repr


class InternalError(GraphregError, RuntimeError):
    """Something that cannot be unless graphreg itself is wrong: bounds that cross."""


class UnattainedError(SolveError):
    """The infimum exists but no point attains it (separable logistic data without a ridge, and its kin)."""


class InfeasibleError(SolveError):
    """No point satisfies all constraints; the message names rows that exclude each other."""


class FailedError(SolveError):
    """The solver or method broke down: non-finite iterates, or no answer at all."""


class ProofError(GraphregError, RuntimeError):
    """An answer of which no proof is found, or a term that a proof cannot state; the message names it."""


class ActorError(GraphregError, RuntimeError):
    """An actor that failed, waits in vain for a message, or whose process has ended; the message names its node."""


class MethodWarning(_Shown, UserWarning):
    """A method that was configured against its theory: a step beyond its bound, a bias that it keeps. It runs all the
    same; the message names the bound."""


class CheckpointWarning(_Shown, UserWarning):
    """A checkpoint that could not be written while its run goes on; the message says why, and what to do."""

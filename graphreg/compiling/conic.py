"""The canonical form as a CVXPY problem, primal or dual, stacked and sparse, with the read-back of both points.

One (n, d) variable for the parameters (or one per block for flows and prices) and sparse matrices, never one
expression per edge. Data and weights go in as constants, strengths that are Parameters as scalar CVXPY parameters.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.clock import check_deadline
from ..base.gate import PATIENCE, carry_out
from ..base.lazy import cp
from ..certificate import common
from ..errors import ConvexityError, SolverError, TermError
from ..form import DualPoint, EdgeBlock, Form, SampleBlock
from ..terms import Array, Parameter, Strength, batches
from ..terms.losses import AbstractLoss, AbstractQuadraticLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractConstraint, AbstractPenalty, split
from .emptiness import names_apart
from .rules import broken_rule
from .solvers import SENT, SolverOutcome, breakdown_of, solved_apart, solver_name
from .units import PLAIN, Parameters, Units, units

MANY = 100_000  # unknowns from which on CVXPY writes by scipy: no slower there, and not deaf for long


@dataclass
class ConicProblem:
    """A compiled problem: ``cvxpy`` (the cvxpy.Problem), ``w`` and ``z`` (or ``flows`` and ``prices``), and
    ``read_back``.

    ``strengths`` are the CVXPY parameters that stand for the model's Parameters; ``refresh`` sets their values.
    """

    form: Form
    cvxpy: Any
    w: Any
    z: list[Any]
    read_back: Callable[[], tuple[Array, DualPoint] | None]
    strengths: list[tuple[Parameter, Any]] = field(default_factory=list)

    def refresh(self) -> None:
        for parameter, stand_in in self.strengths:
            stand_in.value = parameter.value

    def solve(self, solver: str, options: dict[str, Any], apart: bool = False) -> SolverOutcome:
        """Solve, in a process ``apart`` or in this one.

        Raises
        ------
        OutOfTimeError
            Where time is up; the problem is then still being worked on, and no longer of use.
        """
        name = solver_name(solver)
        self.refresh()
        for variable in self.cvxpy.variables():
            variable.value = None  # nothing of an earlier solve may be taken for an answer of this one
        try:
            broke = breakdown_of(lambda: self._compiled_for(name, apart))
        except cp.SolverError as error:
            raise SolverError(f"{solver} cannot take this problem: {str(error).splitlines()[0]}") from None
        except cp.error.DCPError as error:  # pyright: ignore[reportAttributeAccessIssue]
            raise ConvexityError(broken_rule(self.form, error)) from error
        if broke:
            return SolverOutcome(cause=broke)
        with warnings.catch_warnings(action="ignore"):  # "may be inaccurate": the certificate decides
            try:
                broke = breakdown_of(lambda: self.cvxpy.solve(solver=name, warm_start=False, **options))
            except cp.SolverError as error:
                broke = str(error).splitlines()[0]
        return SolverOutcome(cause=broke) if broke else SolverOutcome(str(self.cvxpy.status))

    def _compiled_for(self, name: str, apart: bool) -> None:
        many = self.form.n * self.form.d + self.form.differences > MANY
        _, chain, _ = self.cvxpy.get_problem_data(name, canon_backend="SCIPY" if many else None)
        vars(chain.solver).pop("solve_via_data", None)
        if apart and name in SENT:
            chain.solver.solve_via_data = partial(solved_apart, chain.solver)

    def answer(self) -> tuple[tuple[Array, DualPoint] | None, str]:
        """The answer that the solver left behind, where that is a finite point; and the cause where it cannot be
        read."""
        read: list[Any] = []
        if broke := breakdown_of(lambda: read.append(self.read_back())):
            return None, broke
        found, form = read[0], self.form
        if found is None or not np.isfinite(found[0]).all():
            return None, ""
        shapes = [(edge.count, form.width(edge)) for edge in form.edges]
        right = found[0].shape == form.shape and [np.shape(flow) for flow in found[1].flows] == shapes
        return (found, "") if right else (None, "the solver's answer has another shape than the problem")


@dataclass(eq=False)
class Compiler:
    """Compiles one form, and keeps what it compiled between solves (the dual form holds weights as constants)."""

    form: Form
    _primal: dict[bool, ConicProblem] = field(default_factory=dict[bool, ConicProblem], init=False, repr=False)
    _alone: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @contextmanager
    def alone(self) -> Generator[None]:
        """A context of one thread at a time: CVXPY and the solvers write into what is compiled.

        Raises
        ------
        OutOfTimeError
            Where time is up before it is this thread's turn.
        """
        while not self._alone.acquire(timeout=PATIENCE):
            check_deadline()
        try:
            yield
        finally:
            self._alone.release()

    def __call__(self, kind: str, scaled: bool) -> ConicProblem:
        """The "primal" (in units of the data where ``scaled``) or the "dual" problem."""
        if kind == "dual":
            return carry_out(lambda: dual(self.form, self._units(False).center))
        if scaled not in self._primal:
            self._primal[scaled] = carry_out(lambda: primal(self.form, self._units(scaled)))
        return self._primal[scaled]

    def _units(self, scaled: bool) -> Units:
        if any(edge.map.edges is None for edge in self.form.edges):  # of which the best common model does not know
            return PLAIN
        return units(self.form) if scaled else Units(center=common(self.form).w)

    def forget(self) -> None:
        """Drop what is compiled: a solve that was broken off may still be at work on it."""
        self._primal.clear()


def _written(strength: Strength, known: dict[int, tuple[Parameter, Any]]) -> Any:
    """A strength for CVXPY, with one scalar parameter for each Parameter of a model: those that are ``known``."""
    parameter = strength.parameter
    if parameter is None:
        return strength.factor
    if id(parameter) not in known:
        known[id(parameter)] = (parameter, cp.Parameter(nonneg=True, name=parameter.name))
    return strength.factor * known[id(parameter)][1]


def primal(form: Form, units: Units = PLAIN, reduced: bool = True) -> ConicProblem:
    """minimise P(w) with one variable z = Kw - center per edge block, whose constraint's dual value is the flow; with
    the numbers of the form themselves, or squares ``reduced`` to as many as there are coordinates, which rounds."""
    inner = units.inner(form)
    parameters = Parameters(inner, units)
    strengths: dict[int, tuple[Parameter, Any]] = {}
    constraints: list[Any] = []
    losses = [_loss(block, parameters, constraints, reduced) for block in inner.samples]
    objective: list[Any] = [
        _written(block.strength, strengths) * value for block, (value, _) in zip(inner.samples, losses, strict=True)
    ]
    links: list[Any] = []
    zs = [cp.Variable((edge.count, form.width(edge)), name=f"z{k}") for k, edge in enumerate(inner.edges)]
    for edge, z, name in zip(inner.edges, zs, names_apart(inner.edges), strict=True):
        size, part = parameters.differences(edge)
        link = part - z == (0.0 if edge.center is None else edge.center / size)
        value, domain = split(edge.penalty.cvxpy(z if size == 1.0 else size * z))
        if value is not None:
            _each(value, edge.base_weight.shape, edge.penalty, "row")
            objective.append(_written(edge.strength, strengths) * (edge.base_weight @ value))
        constraints += [each if getattr(each, "label", name) else each.set_label(name) for each in (link, *domain)]
        links.append(link)
    total = sum(objective[1:], objective[0]) if objective else cp.Constant(0.0)  # constraints alone are left
    problem = cp.Problem(cp.Minimize(total if units.value == 1.0 else total / units.value), constraints)

    def read_back() -> tuple[Array, DualPoint] | None:
        found = parameters.read()
        if found is None:
            return None
        moved, w = found
        flows = tuple(
            units.value / units.of(edge)[0] * _value(link.dual_value, z.shape)
            for edge, link, z in zip(inner.edges, links, zs, strict=True)
        )
        prices = tuple(
            block.prices(moved) if link is None else units.value * _value(link.dual_value, block.offset.shape)
            for block, (_, link) in zip(inner.samples, losses, strict=True)
        )
        return w, DualPoint(flows, prices)

    return ConicProblem(form, problem, parameters.V, zs, read_back, list(strengths.values()))


def _loss(block: SampleBlock, w: Parameters, constraints: list[Any], reduced: bool) -> tuple[Any, Any]:
    """The loss, and where its prices are not its gradients the constraint Aw + offset = x whose dual value they are."""
    if reduced and isinstance(block.loss, AbstractQuadraticLoss) and block.map.noun == "sample":
        B, q, constant = _reduced(block)
        return cp.sum_squares(w.apply(B) - q) / 2 + constant, None
    x, link = w.apply(block.A), None
    if block.offset.ndim == 2:
        x = cp.reshape(x, block.offset.shape, order="C")
    x = x + block.offset
    if not isinstance(block.loss, AbstractSmoothLoss):
        free = cp.Variable(block.offset.shape)
        link = x - free == 0
        constraints.append(link)
        x = free
    value, domain = split(block.loss.cvxpy(x, block.y))
    _each(value, block.base_scale.shape, block.loss, "sample")
    constraints += domain
    return block.base_scale @ value, link


def _each(value: Any, shape: tuple[int, ...], term: AbstractLoss | AbstractPenalty, noun: str) -> None:
    if np.shape(value) != shape:
        said = f"must return an expression with one value per {noun}, and returned {value!r}"
        raise TermError(f"cvxpy of {term.called()} {said}")


def _reduced(block: SampleBlock) -> tuple[sp.csr_array, Array, float]:
    """Squared losses as 1/2 ||B vec(w) - q||^2 + constant, each node's samples reduced to d rows by QR."""
    root = np.sqrt(block.base_scale)
    target = block.y - block.offset
    if block.X is None:
        B = sp.diags_array(np.repeat(root, target.shape[1])) @ block.A
        return sp.csr_array(B), (root[:, None] * target).ravel(), 0.0
    d, size = block.X.shape[1], block.A.shape[1]  # pyright: ignore[reportOptionalSubscript]  (scipy has no types)
    rows: list[sp.csr_array] = []
    right: list[Array] = []
    constant = 0.0
    for batch in batches(block.node, block.X):
        lift = batch.pad(root) * batch.mask
        X, y = lift[:, :, None] * batch.X, lift * batch.pad(target)
        if X.shape[1] > d:
            Q, X = np.linalg.qr(X)
            inner = np.einsum("gmk,gm->gk", Q, y)
            constant += float((y**2).sum() - (inner**2).sum()) / 2
            y = inner
        g, k, _ = X.shape
        columns = np.broadcast_to(batch.nodes[:, None, None] * d + np.arange(d), X.shape)
        starts = np.arange(0, g * k * d + 1, d)
        rows.append(sp.csr_array((X.ravel(), columns.ravel(), starts), shape=(g * k, size)))
        right.append(y.ravel())
    return sp.csr_array(sp.vstack(rows)), np.concatenate(right), max(constant, 0.0)


def dual(user: Form, center: Array | None = None) -> ConicProblem:
    """maximise Q(u, a) subject to conservation, whose dual value is -w, less the center where one is given."""
    form = Units(center=center).inner(user)
    n, d = form.shape
    flows = [cp.Variable((e.count, form.width(e)), name=f"u{k}") for k, e in enumerate(form.edges)]
    prices = [cp.Variable(block.offset.shape, name=f"a{k}") for k, block in enumerate(form.samples)]
    objective: list[Any] = []
    constraints: list[Any] = []
    balance: list[Any] = []
    for block, a in zip(form.samples, prices, strict=True):
        s = block.scale
        inverse = 1.0 / (block.column(s) * np.ones(block.offset.shape))
        value, domain = split(block.loss.cvxpy_conjugate(cp.multiply(inverse, a), block.y))
        constraints += domain
        objective.append(s @ value - cp.sum(cp.multiply(a, block.offset)))
        balance.append(block.A.T @ cp.vec(a, order="C"))
    for edge, u in zip(form.edges, flows, strict=True):
        balance.append(edge.flat(form.d).T @ cp.vec(u, order="C"))
        objective += _edge_conjugate(edge, u, constraints)
    conservation: Any = cp.sum(balance) == 0 if len(balance) == 1 else sum(balance[1:], balance[0]) == 0
    constraints.append(conservation)
    problem = cp.Problem(cp.Maximize(-sum(objective[1:], objective[0])), constraints)

    def read_back() -> tuple[Array, DualPoint] | None:
        if any(v.value is None for v in (*flows, *prices)) or conservation.dual_value is None:
            return None
        w = -np.asarray(conservation.dual_value, dtype=float).reshape(n, d)
        w = w if center is None else w + center
        return w, DualPoint(tuple(np.asarray(u.value) for u in flows), tuple(np.asarray(a.value) for a in prices))

    return ConicProblem(user, problem, None, flows, read_back)


def _edge_conjugate(edge: EdgeBlock, u: Any, constraints: list[Any]) -> list[Any]:
    c = edge.weight[:, None] * np.ones(u.shape)
    unit = u if isinstance(edge.penalty, AbstractConstraint) else cp.multiply(1.0 / c, u)
    value, domain = split(edge.penalty.cvxpy_conjugate(unit))
    constraints += domain
    terms = [] if value is None else [edge.weight @ value]
    if edge.center is not None:
        terms.append(cp.sum(cp.multiply(u, edge.center)))
    return terms


def _value(value: Any, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape) if value is None else np.asarray(value, dtype=float).reshape(shape)

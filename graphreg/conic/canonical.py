"""The conic programme in which CVXPY stores a problem, what solvers say of it, and its rows in the user's words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..base.breakdown import cause, panic
from ..base.messages import of_cvxpy
from ..compiling import not_convex
from ..errors import ConvexityError, ModelError, SolverError
from ..terms import Array
from .programme import Block, Programme, Sparse

OURS = "CLARABEL"
SOLVERS = (OURS, "SCS", "OSQP", "HIGHS")
Compiled = tuple[Mapping[str, Any], Any, Any]  # data, CVXPY's reductions, and what undoes them
USUAL = 1e-8  # the tolerance of Clarabel by itself
SHORTER = 0.9  # of the way to the boundary; usually .99


@dataclass(frozen=True, eq=False)
class Canonical:
    """A problem of CVXPY as it is stored for Clarabel: the value of the problem is ``sign`` times that of the programme
    plus ``offset``."""

    problem: Any
    programme: Programme
    offset: float
    sign: float
    data: Mapping[str, Any]
    chain: Any
    inverse: Any

    def last(self) -> tuple[Any, list[Any]]:
        """The objective of which CVXPY makes numbers, and the variables of the first columns, among them its own."""
        from cvxpy import Problem

        with _without_values(self.problem):
            problem: Any = Problem(self.problem.objective)  # what CVXPY adds for it comes first
            for reduction in self.chain.reductions:
                if type(reduction).__name__ == "ConeMatrixStuffing":
                    break
                fresh = copy(reduction)  # what it remembers is of the programme that is stored
                vars(fresh).update({name: dict(x) for name, x in vars(fresh).items() if isinstance(x, dict)})
                problem, _ = fresh.apply(problem)
            return problem.objective.expr, problem.variables()

    @cached_property
    def constraints(self) -> Array:
        """The number of the stored constraint that each row belongs to."""
        sizes = [sum(arg.size for arg in each.args) for each in self.data["param_prob"].constraints]
        return np.repeat(np.arange(len(sizes)), sizes)

    def named(self, k: int) -> str:
        """The user's name of a stored constraint; empty where CVXPY added it."""
        stored = self.data["param_prob"].constraints[k]
        own = next((each for each in self.problem.constraints if each.id == stored.id), None)
        return "" if own is None else _named(own)

    def row(self, row: int) -> str:
        """The constraint that a row belongs to."""
        return self.named(self.constraints[row]) or "a constraint that CVXPY added"

    def variable(self, column: int) -> str:
        """The variable that a column belongs to."""
        stored = self.data["param_prob"]
        own = {v.id: v for v in self.problem.variables()}
        best = max((k for k, start in stored.var_id_to_col.items() if start <= column), key=stored.var_id_to_col.get)
        return f"`{own[best].name()}`" if best in own else "a variable that CVXPY added"

    def point(self, x: Array) -> dict[str, Array]:
        """The values of the user's variables, by name."""
        from cvxpy.reductions.solution import Solution

        found = Solution("optimal", 0.0, {self.inverse[-1]["var_id"]: x}, {}, {})
        for reduction, inverse in list(zip(self.chain.reductions, self.inverse, strict=True))[-2::-1]:
            found = reduction.invert(found, inverse)
        return {v.name(): np.asarray(found.primal_vars[v.id]) for v in self.problem.variables()}

    def columns(self) -> dict[int, Array]:
        """Where the entries of the user's variables stand in the programme, by number, as far as that is known."""
        first, moved, out = self.data["param_prob"].var_id_to_col, dict[int, Any](), dict[int, Array]()
        for reduction, inverse in zip(self.chain.reductions, self.inverse, strict=True):
            if type(reduction).__name__ == "CvxAttr2Constr" and inverse:
                moved = inverse[0]
        for v in self.problem.variables():
            own, place = moved.get(v.id, v), np.arange(v.size)
            if any(v.attributes[name] for name in ("symmetric", "PSD", "NSD")):
                i, j = np.indices(v.shape).reshape(2, -1)  # of the upper triangle, row by row
                i, j = np.minimum(i, j), np.maximum(i, j)
                place = i * v.shape[0] - i * (i + 1) // 2 + j
            elif own.size != v.size:
                continue
            out[v.id] = first.get(own.id, 0) + place  # what has no entries has no columns
        return out


def check(problem: Any) -> None:
    """Raise where a problem is none of CVXPY, or none of which a bound can be proved."""
    from cvxpy import Problem

    if not isinstance(problem, Problem):
        ours = type(problem).__module__.startswith(f"{__name__.partition('.')[0]}.")
        hint = "; a Problem of graphreg has its own: problem.certify(w)" if ours and hasattr(problem, "certify") else ""
        raise ModelError(f"certify takes a problem of CVXPY, not {type(problem).__name__}{hint}")
    whole = [v.name() for v in problem.variables() if v.attributes["integer"] or v.attributes["boolean"]]
    whole += [f"`{each}`" for each in problem.constraints if type(each).__name__ == "FiniteSet"]
    if whole:
        names = ", ".join(whole)
        raise ModelError(f"{names} must be integers: bounds by duality are of convex problems; relax it to get a bound")
    if not problem.is_dcp():
        kind = "; it follows DGP or DQCP, which are not supported" if problem.is_dgp() or problem.is_dqcp() else ""
        part: Any = next(each for each in (problem.objective, *problem.constraints) if not each.is_dcp())
        guilty = next((arg for arg in part.args if not arg.is_dcp()), None)
        said = f"`{part}` is not convex" if guilty is None else not_convex(guilty)
        raise ConvexityError(
            f"the problem does not follow CVXPY's rules of convexity (problem.is_dcp() is False){kind}: {said}"
        )
    if not problem.variables():
        raise ModelError("the problem has no variables, so that there is nothing to bound: its objective is a number")
    if lacking := [p.name() for p in problem.parameters() if p.value is None]:
        raise ModelError(f"parameters without a value: {', '.join(lacking)}; set .value of each")


def compiled(problem: Any, solver: str) -> Compiled:
    """What CVXPY makes of a problem for one of `SOLVERS`; it remembers that for the last solver alone."""
    from cvxpy import error as theirs
    from cvxpy.reductions.solvers.defines import INSTALLED_SOLVERS

    if solver not in SOLVERS:
        raise SolverError(f"{solver!r} is none of the solvers whose answers can be certified: {', '.join(SOLVERS)}")
    if solver not in INSTALLED_SOLVERS:
        raise SolverError(f"{solver} is not installed; installed are {', '.join(INSTALLED_SOLVERS)}")
    try:
        with _without_values(problem):
            return problem.get_problem_data(solver, solver_opts={})
    except (theirs.SolverError, theirs.DCPError) as error:
        raise SolverError(f"{solver} does not take this problem: {error}") from error
    except (NotImplementedError, ValueError) as error:
        raise SolverError(f"CVXPY cannot bring this problem into the form of {solver}: {cause(error)}") from error


def canonical(problem: Any, ours: Compiled | None = None) -> Canonical:
    """The conic programme of a problem, which may be `compiled` for Clarabel."""
    from cvxpy import Maximize

    data, chain, inverse = ours or compiled(problem, OURS)
    A, b, q = sp.csr_array(data["A"]), np.asarray(data["b"], float), np.asarray(data["c"], float)
    n, blocks = len(q), _blocks(data["dims"])
    A, b = _without_infinite(A, b, blocks)
    P = sp.csr_array((n, n)) if data.get("P") is None else sp.csr_array(sp.triu(data["P"]))
    P = sp.csr_array(P + sp.triu(P, 1).T)
    for M in (A, P):
        M.sum_duplicates()
        M.eliminate_zeros()
    sign = -1.0 if isinstance(problem.objective, Maximize) else 1.0
    offset = float(inverse[-1]["offset"])
    if not all(np.isfinite(x).all() for x in (P.data, q, A.data, b, offset)):
        raise ModelError("the problem has numbers that are NaN, or infinite where that is no bound")
    return Canonical(problem, Programme(P, q, A, b, blocks), offset, sign, data, chain, inverse)


def _without_infinite(A: Sparse, b: Array, blocks: tuple[Block, ...]) -> tuple[Sparse, Array]:
    """With 0 <= 1 in place of rows of lines that say less than infinity."""
    lines = [i for x in blocks if x.kind == "nonneg" for i in range(*x.place.indices(len(b)))]
    always = np.isposinf(b) & np.isin(np.arange(len(b)), lines)
    A.data[np.repeat(always, np.diff(A.indptr))] = 0.0
    return A, np.where(always, 1.0, b)


@contextmanager
def _without_values(problem: Any) -> Generator[None]:
    """A context in which the variables have no values: CVXPY hands them on to its own, whose bounds they may miss."""
    values = [(variable, variable.value) for variable in problem.variables()]
    for variable, _ in values:
        variable.save_value(None)
    try:
        yield
    finally:
        for variable, value in values:
            variable.save_value(value)


def _named(constraint: Any) -> str:
    return f"`{getattr(constraint, 'label', None) or of_cvxpy(constraint)}`"


def answered(problem: Any) -> bool:
    """True where a problem was solved, or some of its variables have values."""
    return problem.value is not None or any(v.value is not None for v in problem.variables())


def standing(problem: Any) -> tuple[float | None, str]:
    """The objective at the values of the variables, with the parameters as they are, and what to know of these values;
    the value of the problem where some are missing."""
    if any(v.value is None for v in problem.variables()):
        return problem.value, ""
    try:
        value = float(problem.objective.value)
        missed = [(float(np.max(c.violation(), initial=0.0)), k) for k, c in enumerate(problem.constraints)]
    except Exception:  # noqa: BLE001 - of a point outside their domains atoms and cones may raise anything
        return None, ""
    most, k = max(missed, default=(0.0, 0))
    given = f"they miss your constraints by at most {most:.2g}"
    given += f": {_named(problem.constraints[k])}" if most > 0.0 else ""
    before = value if problem.value is None else float(problem.value)
    other = f"; problem.value, {before:.10g}, is of other parameters or values: solve again"
    return value, given + other * (not np.isclose(before, value))


def _blocks(dims: Any) -> tuple[Block, ...]:
    if list(dims.pnd):
        raise ModelError("power cones of more than three dimensions are not supported")
    parts: list[tuple[str, int, float]] = [("zero", dims.zero, 0), ("nonneg", dims.nonneg, 0)]
    parts += [("soc", k * len(list(alike)), k) for k, alike in groupby(dims.soc)]
    parts += [("psd", k * (k + 1) // 2, k) for k in dims.psd]
    parts += [("exp", 3 * dims.exp, 0), *(("pow", 3, float(a)) for a in dims.p3d)]
    blocks, at = list[Block](), 0
    for kind, count, size in parts:
        blocks.append(Block(kind, slice(at, at + count), float(size)))
        at += count
    return tuple(block for block in blocks if block.place.stop > block.place.start)


# ---- solvers, whose answers are proposals ----------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver says: x and prices z of the rows.

    Where ``ray`` is "infeasible", z is one that should prove so; where it is "unbounded", x is a direction of descent;
    where it is "none", nothing is said. ``by`` says whose it is.
    """

    x: Array
    z: Array
    ray: str = ""
    by: str = "an answer"


NOTHING = Answer(np.zeros(0), np.zeros(0), "none")


def solve(stored: Canonical, solver: str, theirs: Compiled, options: Mapping[str, Any]) -> Answer:
    """Solve by one of `SOLVERS` what CVXPY made of the problem for it, and leave the answer in the problem."""
    from cvxpy.error import SolverError as Failed
    from cvxpy.settings import SOLUTION_PRESENT

    problem, (data, chain, inverse) = stored.problem, theirs
    try:
        raw = _unless_panic(lambda: chain.solve_via_data(problem, data, solver_opts=dict(options)))
    except Exception as error:
        raise SolverError(f"{solver} stopped with {cause(error)}") from error
    if raw is None:
        return NOTHING
    try:
        problem.unpack_results(raw, chain, inverse)
        status = str(problem.status)
    except (Failed, ValueError):  # of matrices that are not symmetric some atoms have no value
        status = "solver_error"
    x, z = _raw(solver, raw, data["dims"])
    fits = x.shape == stored.programme.q.shape and z.shape == stored.programme.b.shape
    if status not in SOLUTION_PRESENT or not fits or not _same(stored, data):
        return NOTHING
    return Answer(x, z, by=f"the answer of {solver}")


def _unless_panic(work: Callable[[], Any]) -> Any:
    """What a solver gives; None where one that is written in Rust has given up, which is no ``Exception``."""
    try:
        return work()
    except BaseException as error:
        if not panic(error):
            raise
        return None


def _same(stored: Canonical, data: Mapping[str, Any]) -> bool:
    """True where a solver's data have the rows of the stored ones, of those of quadratic programmes one half."""
    if data.get("lower_bounds") is not None or data.get("upper_bounds") is not None:
        return False
    return data["A"].shape[0] + (data["F"].shape[0] if "F" in data else 0) == len(stored.programme.b)


def _raw(solver: str, raw: Any, dims: Any) -> tuple[Array, Array]:
    if solver == OURS:
        found = raw.x, raw.z
    elif solver == "SCS":
        found = raw["x"], _upper_triangles(np.asarray(raw["y"], float), dims)
    elif solver == "OSQP":
        found = raw.x, raw.y
    else:
        found = raw["solution"].col_value, -np.asarray(raw["solution"].row_dual, float)
    x, z = (np.array([] if part is None else part, float) for part in found)
    return (x, z) if np.isfinite(x).all() and np.isfinite(z).all() else (NOTHING.x, NOTHING.z)


def _upper_triangles(z: Array, dims: Any) -> Array:
    """SCS stores lower triangles column by column."""
    z, at = z.copy(), dims.zero + dims.nonneg + sum(dims.soc)
    for k in dims.psd:
        column, row = np.triu_indices(k)  # of the lower triangle, column by column
        z[at + row * (row + 1) // 2 + column] = z[at : at + k * (k + 1) // 2].copy()
        at += k * (k + 1) // 2
    return z


def helped(p: Programme, feasible: bool = False, tolerance: float | None = None) -> Answer:
    """What Clarabel says of a programme, or of its constraints alone; where a tolerance is given less exactly, by
    shorter steps, which end where longer ones lead nowhere."""
    clarabel: Any = import_module("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if tolerance is not None:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        settings.max_step_fraction = SHORTER
    make: dict[str, Callable[[int, float], list[Any]]] = {
        "zero": lambda count, _: [clarabel.ZeroConeT(count)],
        "nonneg": lambda count, _: [clarabel.NonnegativeConeT(count)],
        "soc": lambda count, k: [clarabel.SecondOrderConeT(int(k))] * (count // int(k)),
        "psd": lambda _, k: [clarabel.PSDTriangleConeT(int(k))],
        "exp": lambda count, _: [clarabel.ExponentialConeT()] * (count // 3),
        "pow": lambda _, a: [clarabel.PowerConeT(a)],
    }
    cones = [cone for b in p.blocks for cone in make[b.kind](b.place.stop - b.place.start, b.size)]
    P, q = (p.P * 0.0, p.q * 0.0) if feasible else (p.P, p.q)
    upper, A = sp.csc_matrix(sp.triu(P)), sp.csc_matrix(p.A)
    found = _unless_panic(lambda: clarabel.DefaultSolver(upper, q, A, p.b, cones, settings).solve())
    if found is None:
        return NOTHING
    x, z = np.array(found.x), np.array(found.z)
    if not (np.isfinite(x).all() and np.isfinite(z).all()):
        return NOTHING
    rays = {"PrimalInfeasible": "infeasible", "DualInfeasible": "unbounded"}
    by = "an answer of Clarabel" + (f" to a tolerance of {tolerance:g}" if (tolerance or USUAL) > USUAL else "")
    return Answer(x, z, rays.get(str(found.status).removeprefix("Almost"), ""), by)


def vertex(p: Programme) -> Answer:
    """What the simplex method says of a linear programme, whose cones are lines."""
    from scipy.optimize import linprog

    zero, lines = np.arange(len(p.b) - len(p.in_cones)), p.in_cones
    found = linprog(p.q, p.A[lines], p.b[lines], p.A[zero], p.b[zero], bounds=(None, None), method="highs-ds")
    if not found.success:
        return NOTHING
    prices = -np.concatenate([found.eqlin.marginals, found.ineqlin.marginals])
    return Answer(found.x, prices, by="an answer of the simplex method")

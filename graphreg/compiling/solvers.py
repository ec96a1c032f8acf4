"""Conic solvers: what each is asked, in which order, and how it ends, breaks down or is broken off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

from ..base.breakdown import cause, panic
from ..base.clock import OutOfTimeError
from ..base.gate import aside, carry_out
from ..base.lazy import cp
from ..errors import SolverError

_TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "accept_unknown": True}
_SHORT = {**_TIGHT, "max_step_fraction": 0.9, "min_terminate_step_length": 1e-8}

# What a solver is asked, in this order, until the certificate suffices: (in units of the data?, its options). First
# its defaults, then tight tolerances, in both units: solvers stop on absolute tolerances, so that very small or large
# responses want the units of the data, while losses of very different sizes are better told apart in the user's.
# Clarabel's exponential cones (logistic losses) sometimes stall; shorter steps, or no equilibration, get past that.
Attempt = tuple[bool, dict[str, Any]]
ATTEMPTS: dict[str, tuple[Attempt, ...]] = {
    "CLARABEL": (
        (True, {}),
        (True, _TIGHT),
        (False, _TIGHT),
        (False, _SHORT),
        (True, _SHORT),
        (True, {**_SHORT, "equilibrate_enable": False}),
    ),
    "SCS": ((True, {}), (True, {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000})),
    "OSQP": ((True, {}), (True, {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 200_000})),
    "ECOS": ((True, {}), (True, {"abstol": 1e-11, "reltol": 1e-11, "feastol": 1e-11})),
}


def attempts(solver: str, kind: str) -> tuple[Attempt, ...]:
    """The attempts with a solver; its defaults alone where nothing is known of it. The dual form has no units."""
    known = ATTEMPTS.get(solver_name(solver), ((True, {}),))
    return tuple(attempt for attempt in known if kind == "primal" or attempt[0])


SENT = ("CLARABEL", "SCS")  # whose answers can be sent from one process to another
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}


def time_limit(solver: str, seconds: float | None) -> dict[str, Any]:
    """The option by which a solver ends after so many seconds: it looks at the clock between its iterations, not while
    CVXPY compiles. Nothing for solvers of which no such option is known."""
    name = TIME_LIMITS.get(solver_name(solver))
    return {} if seconds is None or name is None else {name: seconds}


@cache
def solver_name(solver: str) -> str:
    """The name under which CVXPY knows an installed solver. It looks for all of them, which takes longer than many a
    small solve: once for each that is there."""
    installed = cp.installed_solvers()
    if solver.upper() not in installed:
        raise SolverError(
            f"the solver {solver!r} is not installed; there are {', '.join(s.lower() for s in installed)}"
        )
    return solver.upper()


@dataclass(frozen=True)
class SolverOutcome:
    """The outcome of a solve: the status that CVXPY reports, or the cause of a breakdown."""

    status: str = ""
    cause: str = ""

    @property
    def denies(self) -> bool:
        """True where the solver says that there is no point, or no bound."""
        from cvxpy.settings import INF_OR_UNB

        return self.status in INF_OR_UNB

    def __str__(self) -> str:
        return f"failed ({self.cause})" if self.cause else self.status


def solved_apart(solver: Any, data: Any, warm_start: bool, verbose: bool, options: Any, cache: Any = None) -> Any:
    """What a solver of CVXPY's gives, by a process of its own."""
    numbers = {key: value for key, value in data.items() if key != "param_prob"}  # which is of CVXPY's expressions
    return aside(_plain, type(solver), numbers, verbose, options)


def _plain(kind: Any, data: Any, verbose: bool, options: Any) -> Any:
    """The same in this process; what Clarabel gives, as objects that can be sent."""
    found = kind().solve_via_data(data, False, verbose, options)
    if isinstance(found, dict):
        return found
    named = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return SimpleNamespace(**{n: v if isinstance(v, int | float | list) else str(v) for n, v in named.items()})


def breakdown_of(work: Callable[[], Any]) -> str:
    """Carries out what CVXPY or a solver does; the cause where it breaks down, but for errors that CVXPY has names
    for."""
    try:
        carry_out(work)
    except (OutOfTimeError, MemoryError, cp.SolverError, cp.error.DCPError):  # pyright: ignore[reportAttributeAccessIssue]
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is
        return cause(error)
    except BaseException as error:
        if not panic(error):
            raise
        return cause(error)
    return ""

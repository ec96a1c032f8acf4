"""Problem: the front door. One description, two routes, one certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import checks
from .certificate import Certifier, levelled
from .compiling import conic
from .engines.actors import Actors
from .errors import (
    CheckpointError,
    FailedError,
    GraphError,
    MethodError,
    ModelError,
    SolveError,
    UnattainedError,
    UnboundedError,
)
from .form import Form, build, notation
from .inputs import is_frame
from .messages import missing_entries, unknown_labels
from .methods import METHOD, AbstractMethod, Exact, Start, listed
from .running import Budget, Checkpoint, Record, Solution, contradicted, solve
from .terms import Model

if TYPE_CHECKING:
    from .running.overview import Overview

RAISES: dict[str, type[SolveError]] = {
    "unattained": UnattainedError,
    "unbounded": UnboundedError,
    "failed": FailedError,
}


@dataclass(frozen=True)
class Compiled:
    """A problem compiled to CVXPY.

    Attributes
    ----------
    cvxpy : cvxpy.Problem
        To be solved by whoever likes; ``read()`` then certifies what was found.
    w : cvxpy.Variable
        The (n, d) parameters, latent nodes last (None in the dual form).
    z : list
        One (m, k) variable per edge block: the differences in the primal form, the flows in the dual form.
    """

    cvxpy: Any
    w: Any
    z: list[Any]
    conic: conic.ConicProblem

    def read(self) -> Solution:
        """The answer that stands in the CVXPY problem, certified by graphreg's own code.

        Returns
        -------
        Solution

        Raises
        ------
        FailedError
            Where the CVXPY problem has no values: it was not solved, or not successfully. And where a term of the
            user's is found to break a law that bounds rest on, which the message names.

        Examples
        --------
        >>> compiled = problem.compile()
        >>> _ = compiled.cvxpy.solve(solver="CLARABEL")
        >>> compiled.read().certificate.holds(1e-6)
        True
        """
        found = self.conic.read_back()
        if found is None:
            raise FailedError("the CVXPY problem holds no answer; call .cvxpy.solve(...) first")
        certificate = Certifier(self.conic.form.frozen()).certify(found[0], found[1].flows, found[1].prices, 1e-6)
        certificate = levelled(certificate, 1e-6)
        status = "certified" if certificate.holds(1e-6) else "no_certificate"
        message = f"Read from CVXPY, whose solver said {self.cvxpy.status!r}."
        if certificate.contradiction:
            status, message = "failed", contradicted(certificate)
        solution = Solution(certificate.form, certificate, status, message, "CVXPY")
        if status == "failed":
            raise FailedError(message, solution)
        return solution


class Problem:
    """A convex problem on a graph, from a model (a sum of terms).

    Parameters
    ----------
    model : Model
        Losses on the nodes plus penalties; at least one loss.
    """

    def __init__(self, model: Any) -> None:
        self.model = Model.of(model)
        _check_labels(self.model)
        self.form: Form = build(self.model)

    def __reduce__(self) -> tuple[Any, ...]:
        return Problem, (self.model,)  # what was compiled stays behind: solvers can be neither copied nor sent

    # ---- solving -----------------------------------------------------------------------------------------------
    @checks.named
    def solve(  # noqa: PLR0913
        self,
        method: AbstractMethod | None = None,
        *,
        gap: float = 1e-6,
        rounds: int | None = None,
        seconds: float | None = None,
        seed: int | None = None,
        start: Any = None,
        callback: Callable[[Record], Any] | None = None,
        progress: bool | None = None,
        checkpoint: Any = None,
        engine: Actors | None = None,
        on_failure: str = "raise",
    ) -> Solution:
        """Solve, and certify the answer.

        Parameters
        ----------
        method : AbstractMethod, optional
            ``Exact()`` by default.
        gap : float
            The relative gap asked for, (P - Q) / max(|P|, |Q|, 1e-3 P_common), P_common the objective of the best
            common model (one parameter vector for all nodes).
        rounds : int, optional
            Exactly so many rounds unless the gap is met first (``gap=0`` never is).
        seconds : float, optional
            A budget of time, for everything: rounds, a conic solver, CVXPY's compilation, linear programmes.
        seed : int, optional
            Of the numbers that random methods draw: the same seed gives the same run. By default one is drawn, which
            ``solution.seed`` tells.
        start : Solution or (n, d) array, optional
            Where an iterative method begins; by default 0, or the best common model (`AbstractMethod.centres`).
            A Solution of the same edges brings its flows as well.
        callback : callable, optional
            Called with the `Record` of every check.
        progress : bool, optional
            Whether to show a progress bar; by default where stderr is a terminal.
        checkpoint : path or Checkpoint, optional
            A file in which an iterative method keeps its run, every 60 seconds by default. Where the file exists the
            run goes on from it: the same call after a kill ends with the same bits (on the same machine and versions)
            as one that was never broken off. ``rounds`` and ``seconds`` count from the start of the run, whatever
            call they were spent in; with a smaller gap or a larger budget a finished run goes on. ``start`` may be
            left out, or be the one that the run began from.
        engine : Actors, optional
            Where an iterative method runs: by default on whole arrays, with the messages recorded that isolated nodes
            would send; ``gr.Actors()`` makes every node an actor that sends them.
        on_failure : {"raise", "return"}
            What to do where the status is unattained, unbounded or failed.

        Returns
        -------
        Solution
            Its status and message say what was reached; Ctrl-C returns the best point with its certificate.

        Raises
        ------
        MethodError
            The method does not apply; with each requirement that is not met.
        CheckpointError
            The checkpoint is of another problem, method or start, is damaged or cannot be written; with what differs.
        SolveError
            See ``on_failure``; the exception's ``solution`` holds what there is.

        Examples
        --------
        >>> problem.solve(gr.PrimalDual(), gap=1e-4).status
        'certified'
        """
        method = Exact() if method is None else method
        self._check_call(method, gap, rounds, seconds, callback, on_failure, progress)
        (checks.seed | None)(seed, "seed")
        (checks.instance(Actors, "gr.Actors(...)") | None)(engine, "engine")
        stored = Checkpoint.of(checkpoint)
        given = {"engine": engine, "checkpoint": stored, "rounds": rounds, "callback": callback}
        for what, why in method.refuses().items():
            if given[what] is not None:
                raise (CheckpointError if what == "checkpoint" else MethodError)(f"{why}; leave {what} out")
        if engine is not None and stored is not None:
            raise CheckpointError(
                "a run of actors is not kept: each holds its own state; leave checkpoint or engine out"
            )
        budget = Budget(gap, rounds, seconds, self._start(start), callback, progress, stored, seed, engine)
        solution = solve(self.form.frozen(), method, budget, self._compiler)
        if solution.status in RAISES and on_failure == "raise":
            raise RAISES[solution.status](solution.message, solution)
        return solution

    def _check_call(
        self, method: Any, gap: float, rounds: Any, seconds: Any, callback: Any, on_failure: str, progress: Any
    ) -> None:
        METHOD(method, "the method of solve", MethodError)
        missing = method.missing(self.form)
        if missing:
            raise MethodError(f"{method.name} does not apply: " + "; ".join(missing), missing)
        checks.nonnegative(gap, "gap")
        (checks.count | None)(rounds, "rounds")
        (SECONDS | None)(seconds, "seconds")
        (checks.function("a function of a Record") | None)(callback, "callback")
        (checks.switch | None)(progress, "progress")
        checks.one_of("raise", "return")(on_failure, "on_failure")

    def _start(self, start: Any) -> Start | None:
        if start is None:
            return None
        if isinstance(start, Solution):
            same = [len(edge.tail) for edge in start.form.edges] == [len(edge.tail) for edge in self.form.edges]
            given, flows = start.certificate.w, start.certificate.dual_point.flows if same else None
        else:
            start = _by_label(start, self.form) if is_frame(start) else start
            given, flows = checks.numbers(start, "start", "a Solution or an array of numbers"), None
        observed = len(self.form.space.index)
        if given.shape not in (self.form.shape, (observed, self.form.d)):
            raise ModelError(f"start must have the shape {(observed, self.form.d)}, got {given.shape}")
        if not np.isfinite(given).all():
            raise ModelError("start has NaN or infinite entries")
        w = np.zeros(self.form.shape)
        w[: len(given)] = given
        return w, flows

    # ---- the exact route ---------------------------------------------------------------------------------------
    @cached_property
    def _compiler(self) -> conic.Compiler:
        return conic.Compiler(self.form)

    def compile(self, form: str = "primal") -> Compiled:
        """The problem in CVXPY, primal or dual, stacked and sparse.

        Returns
        -------
        Compiled
            ``.cvxpy`` (the cvxpy.Problem), ``.w``, and ``.read()`` for the certified answer.

        Raises
        ------
        ModelError
            For another ``form``.

        Examples
        --------
        >>> type(problem.compile("dual").cvxpy).__name__
        'Problem'
        """
        checks.one_of("primal", "dual")(form, "form")
        built = conic.primal(self.form) if form == "primal" else conic.dual(self.form)
        built.refresh()
        return Compiled(built.cvxpy, built.w, built.z, built)

    # ---- what may be asked of a problem --------------------------------------------------------------------------
    def methods(self) -> Overview:
        """Which methods apply, what the others lack, what each needs in general and sends in a round.

        A DataFrame with the columns applies, missing, needs and sends, which ``print`` shows as text.

        Returns
        -------
        Overview

        Examples
        --------
        >>> bool(problem.methods().loc["PrimalDual", "applies"])
        True
        """
        from .running.overview import overview

        return overview(self.form, listed())

    def dual(self) -> notation.Written:
        """The dual problem: flows, capacities, conservation; ``print`` it, or ``.latex()``.

        Returns
        -------
        Written

        Examples
        --------
        >>> str(problem.dual()).startswith("maximise over")
        True
        """
        return notation.dual(self.form)

    def kkt(self) -> notation.Written:
        """The optimality conditions; ``print`` them, or ``.latex()``.

        Returns
        -------
        Written

        Examples
        --------
        >>> str(problem.kkt()).partition(":")[0]
        'stationarity'
        """
        return notation.kkt(self.form)

    def latex(self) -> str:
        """The primal problem in LaTeX.

        Returns
        -------
        str

        Examples
        --------
        >>> "minimise" in problem.latex()
        True
        """
        return notation.primal(self.form).latex()

    def __str__(self) -> str:
        return str(notation.primal(self.form))

    def __repr__(self) -> str:
        n, d = self.form.space.n_observed, self.form.d
        return f"<Problem: {n} nodes x {d} coordinates, {len(self.model.terms)} terms>"


SECONDS = checks.inside("(0, inf]", "a positive number")


def _by_label(frame: Any, form: Form) -> Any:
    """The entries of a data frame in the order of the nodes and their parameters."""
    rows, columns = list(form.space.index), list(form.space.names)
    for given, known, of in ((frame.index, rows, "node"), (frame.columns, columns, "parameter")):
        for said in (*unknown_labels("start", given, known, of), *missing_entries("start", given, known, of)):
            raise ModelError(said)
    return frame.loc[rows, columns]


def problem_of(value: Any, taker: str) -> Problem:
    """The problem that was given; anything else is refused."""
    if not isinstance(value, Problem):
        raise ModelError(f"{taker} takes a Problem, got {value!r}; write gr.Problem(model)")
    return value


def _check_labels(model: Model) -> None:
    """Nodes of two terms that only look the same, 1 and '1', are refused; within one graph they are its own affair."""
    sets = list(dict.fromkeys(nodes for _, term in model.terms if (nodes := term.nodes())))
    known = {str(label): label for label in sets[0]} if sets else {}
    for nodes in sets[1:]:
        for label in nodes:
            other = known.setdefault(str(label), label)
            if other != label and type(other) is not type(label):
                raise GraphError(
                    f"one term has the node {other!r} of type {type(other).__name__}, another the node {label!r} of "
                    f"type {type(label).__name__}: labels are compared as they are; rename those of one"
                )

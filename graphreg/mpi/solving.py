"""The problem of a process, solved with those of all others of an MPI job."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Set
from dataclasses import replace
from typing import Any

from .. import checks
from ..distributed import Facts, LocalSolution, MPIWire, abort, agreed, call, solve_jointly, versions, world
from ..errors import MethodError
from ..form import Form
from ..methods import METHOD, AbstractIteration, AbstractMethod, PrimalDual
from ..problem import Problem
from ..running import Budget, Checkpoint
from ..saving import of_losses


def solve(  # noqa: PLR0913 - those of Problem.solve
    problem: Problem,
    own: Collection[Hashable],
    method: AbstractMethod | None = None,
    *,
    gap: float = 1e-6,
    rounds: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: Any = None,
) -> LocalSolution:
    """Solve a problem of which this process has its own nodes alone; every process of the job calls it.

    The answer is that of one machine, and so are its bounds, whose proofs are put together from what each process
    proves of its own nodes and edges. Iterates are the same bits for any number of processes.

    Parameters
    ----------
    problem : Problem
        Of the ``own`` nodes with their samples, and of all edges and rows that touch one of these; their other ends are
        nodes of it without samples. An edge or a row between processes is in the problems of all of them, and whole:
        ``gr.w.across(graph, 2)`` takes the edges that touch a neighbour of an own node, too.
    own : collection of labels
        The nodes of this process. Every node belongs to one process.
    method : AbstractIteration
        ``PrimalDual()`` by default; any that iterates and knows its flows.
    gap, rounds, seconds, seed, progress
        As for `Problem.solve`. Progress is shown by the first process.

    checkpoint : path or Checkpoint, optional
        A folder that all processes see, in which each keeps its part of the run, every 60 seconds by default. Where a
        run is there, it goes on: with the bits that it would have had.

    Returns
    -------
    LocalSolution

    Raises
    ------
    DataError
        Where processes have different terms or features, where a node belongs to two of them or to none, or where an
        edge or a row between two is known to one alone.
    MethodError
        Where the method or the model is none that is known here; with the reason. Where processes have other versions,
        or call this with other arguments; with the ranks and their values.

    These are raised on every process alike, and an uncaught one is shown once. What fails in a round ends all processes
    with the exit status 1: the others would wait for ever.
    """
    comm = world()
    budget = Budget(gap, rounds, seconds, seed=seed, progress=progress)
    chosen = PrimalDual() if method is None else method

    def facts() -> Facts:
        _check(problem.form, chosen, budget)
        kept = replace(budget, checkpoint=Checkpoint.of(checkpoint))
        return {"versions": versions(), "call": call(chosen, kept), "model": of_losses(problem.form)}

    agreed(comm, facts)
    assert isinstance(chosen, AbstractIteration)
    mine = own if isinstance(own, (Set, range)) else frozenset(own)  # nodes are looked up there, one by one
    budget = replace(budget, checkpoint=Checkpoint.of(checkpoint))
    try:
        return solve_jointly(problem.form.frozen(), mine, chosen, budget, MPIWire(comm))
    except BaseException as error:
        if comm.size > 1 and not getattr(error, "shared", False):
            abort(error)
        raise


def _check(form: Form, method: AbstractMethod, budget: Budget) -> None:
    checks.nonnegative(budget.gap, "gap")
    (checks.count | None)(budget.rounds, "rounds")
    (checks.seconds | None)(budget.seconds, "seconds")
    checks.seed(budget.seed, "seed")
    METHOD(method, "method", MethodError)
    if not isinstance(method, AbstractIteration) or method.central:
        raise MethodError(f"{method.name} takes all data in one place; take gr.PrimalDual() or another that iterates")
    if missing := method.missing(form):
        raise MethodError(f"{method.name} does not apply: " + "; ".join(missing), missing)

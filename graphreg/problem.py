"""Problem: the front door. One description, two routes, one certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import checks
from .base.breakdown import Watched
from .base.display import Html, ShownFormula, details, inside, title
from .base.gate import allowing
from .base.messages import warn
from .compiling import conic
from .errors import (
    CheckpointError,
    FailedError,
    GraphError,
    InfeasibleError,
    MethodError,
    ModelError,
    SolveError,
    UnattainedError,
)
from .form import Form, build, notation
from .inputs import Labels
from .judging import Compiled, Given, Judgement, given_arrays, given_flows, given_point, given_start, judge
from .methods import METHOD, AbstractMethod, listed
from .oracles import Oracles
from .running import KEPT, ONE_ENGINE, AbstractEngine, Budget, Checkpoint, Record, Solution, observer_of, solve
from .terms import Model, updated

if TYPE_CHECKING:
    from .running.overview import Overview

RAISES: dict[str, type[SolveError]] = {
    "unattained": UnattainedError,
    "infeasible": InfeasibleError,
    "failed": FailedError,
}
ENGINE = checks.instance(AbstractEngine, "gr.Actors(faults=gr.Faults(...)), gr.Malicious(...), gr.Parts() or gr.MPI()")
ARGUMENTS = {  # what those of `Problem.solve` may be
    "gap": checks.nonnegative,
    "rounds": checks.count | None,
    "seconds": checks.seconds | None,
    "memory": checks.positive | None,
    "threads": checks.count | None,
    "seed": checks.seed | None,
    "callback": checks.function("a function of a Record") | None,
    "progress": checks.switch | None,
    "engine": replace(ENGINE | None, hint=lambda given: f"; {ONE_ENGINE}" * isinstance(given, (list, tuple, set))),
    "on_failure": checks.one_of("raise", "return"),
}


class Problem(checks.ChecksNames, ShownFormula):
    """A convex problem on a graph, from a model (a sum of terms).

    Parameters
    ----------
    model : Model
        Losses on the nodes plus penalties; at least one loss, or terms on rows of `graphreg.w`.
    features : sequence of str, optional
        The coordinates of the parameters of a model without data, where they are more than one.

    Attributes
    ----------
    changes : tuple of str
        What `update` changed; empty where nothing was updated.

    Examples
    --------
    >>> problem = gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(graph, gr.L2()))
    >>> answer = problem.solve()
    >>> answer.table().round(2)
          rain  temp
    node
    a     0.97 -0.02
    b     0.97 -0.02
    c    -0.98  0.03
    d    -0.98  0.03
    """

    changes: tuple[str, ...] = ()

    def __init__(self, model: Any, *, features: Sequence[str] | None = None) -> None:
        self.model, self._features = Model.of(model), features
        _check_labels(self.model)
        self.form: Form = build(self.model, features)
        self._compiler = conic.Compiler(self.form)

    def update(self, *data: Any) -> Problem:
        """The same model on other data, as a new problem; this one stays as it is.

        Parameters
        ----------
        *data : NodeData, frame, array, mapping or None
            One for each loss, in the order of the model, None (or nothing, for the last ones) where its data stay.

            - NodeData with the same features, or a frame with the columns from which the data were read: they take the
              place of all samples. Nodes may be added where the graph has them, and left without data.
            - an array: the targets, one per row of the data that there are.
            - a mapping of labels to (X, y): the samples of these nodes; those of the others stay.

        Returns
        -------
        Problem
            ``changes`` says in words what changed, a sentence per loss. The answer to this one is a good ``start``.

        Raises
        ------
        DataError
            For other features, targets or rows than these, a node that the graph lacks, and as `NodeData` and the
            losses; what is wrong is named.

        Examples
        --------
        >>> updated = problem.update(data.y + 0.1)
        >>> updated.changes
        ('SquaredLoss: 24 of 24 targets changed, at 4 of 4 nodes',)
        """
        model, changes = updated(self.model, data)
        new = Problem(model, features=self._features)
        new.changes = changes
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        # what was compiled stays behind: solvers can be neither copied nor sent
        return partial(Problem, features=self._features), (self.model,)

    # ---- solving -----------------------------------------------------------------------------------------------
    @checks.named
    def solve(  # noqa: PLR0913
        self,
        method: AbstractMethod | None = None,
        *,
        gap: float = 1e-6,
        rounds: int | None = None,
        seconds: float | None = None,
        memory: float | None = None,
        threads: int | None = None,
        seed: int | None = None,
        start: Any = None,
        callback: Callable[[Record], Any] | None = None,
        observe: Any = None,
        progress: bool | None = None,
        checkpoint: Any = None,
        engine: AbstractEngine | None = None,
        on_failure: str = "raise",
    ) -> Solution:
        """Solve, and certify the answer.

        Parameters
        ----------
        method : AbstractMethod, optional
            ``Auto()`` by default: `DynamicProgramming` or `OneNode` where they apply, else whatever is predicted to be
            the fastest of `LinearSystem`, `PrimalDual`, `InteriorPoint` and `Exact`. ``gr.Exact()`` is the route
            through CVXPY.
        gap : float
            The relative gap asked for, (P - Q) / max(|P|, |Q|, 1e-3 P_common), P_common the objective of the best
            common model (one parameter vector for all nodes).
        rounds : int, optional
            Exactly so many rounds unless the gap is met first (``gap=0`` never is, and the answer is then of the last
            iterate, which may be worse than an earlier one).
        seconds : float, optional
            A budget of time, for everything: rounds, a conic solver, CVXPY's compilation, linear programmes.
        memory : float, optional
            A bound of the bytes that may be taken beside the problem itself, ``4e9`` for 4 GB; never more than 0.8 of
            the memory of the machine, or of what ``ulimit -v`` or a container allow. What is predicted to take more is
            not begun, and the answer is "failed" with the bounds so far; see `methods` for what each method takes.
        threads : int, optional
            How many threads passes over very many nodes and edges may take; no bit of an answer depends on it. By
            default as many as the environment variable ``GRAPHREG_THREADS`` says, else one.
        seed : int, optional
            Of the numbers that random methods draw: the same seed gives the same run. By default one is drawn, which
            ``solution.seed`` tells.
        start : Solution or (n, d) array, optional
            Where an iterative method begins; by default 0, or the best common model (`AbstractMethod.centres`).
            Of a Solution, also of another problem, parameters are taken by the labels of nodes and features, flows by
            term and edge, within the capacities of this problem. New nodes begin at the weighted means of their
            neighbours, new features at 0; the message says what did not match. No answer is worse than the start (but
            that of a baseline, which solves a problem of its own).
        callback : callable, optional
            Called with the `Record` of every check, of which there is none where `Auto` takes a method without rounds.
            Where it raises KeyboardInterrupt, the run ends there as by Ctrl-C: with the best point so far and its
            certificate, "interrupted" (or "certified", where that has the ``gap``; of a baseline, where its own problem
            has it, "no_certificate"). Whatever else it raises is passed on.
        observe : Observer, or what it observes, optional
            The iterates to be kept, for ``solution.observed``: "w", ("w", "flows"), {"error": a function of an
            Observation}, or ``gr.Observer(what, rounds=...)``. They are those of the method, and not certified.
        progress : bool, optional
            Whether to show a progress bar; by default where stderr is a terminal.
        checkpoint : path or Checkpoint, optional
            A file in which an iterative method keeps its run, every 60 seconds by default. Where the file exists the
            run goes on from it: the same call after a kill ends with the same bits (on the same machine and versions)
            as one that was never broken off. ``rounds`` and ``seconds`` count from the start of the run, whatever
            call they were spent in; with a smaller gap or a larger budget a finished run goes on. ``start`` may be
            left out, or be the one that the run began from.
        engine : AbstractEngine, optional
            Where an iterative method runs: by default on whole arrays, with the messages recorded that isolated nodes
            would send. ``gr.Actors()`` makes every node an actor that sends them, ``gr.Parts(4)`` deals the nodes out
            to four parts, and ``gr.MPI()`` to the processes of an MPI job.
        on_failure : {"raise", "return"}
            What to do where the status is unattained, infeasible or failed.

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
        if method is None:
            from .methods import Auto

            method = Auto()
        plain = {"gap": gap, "rounds": rounds, "seconds": seconds, "memory": memory, "threads": threads, "seed": seed}
        more = {"callback": callback, "progress": progress, "engine": engine, "on_failure": on_failure}
        check_solve(method, self.form, **plain, **more)
        stored = None if checkpoint is None else Checkpoint.of(checkpoint)
        observer = None if observe is None else observer_of(observe)
        given = {"engine": engine, "checkpoint": stored, "rounds": rounds, "callback": callback, "observe": observer}
        _check_together(method, given)
        form = self.form.frozen()
        begun = None if start is None else given_start(start, "start", form)
        point = None if begun is None else (begun.w, begun.flows)
        looks = None if observer is None else Watched(observer)
        kept: dict[str, Any] = {"observer": looks, "memory": memory, "threads": threads}
        budget = Budget(gap, rounds, seconds, point, callback, progress, stored, seed, engine, **kept)
        run = partial(solve, form, method, budget, self._compiler)
        solution = run() if engine is None else engine.everywhere(form, method, budget, run)
        if begun is not None and begun.note:
            solution = replace(solution, message=f"{solution.message} {begun.note}")
        if solution.status in RAISES and on_failure == "raise":
            raise RAISES[solution.status](solution.message, solution)
        return solution

    # ---- judging a point -----------------------------------------------------------------------------------------
    def value(self, w: Any) -> float:
        """P(w), the objective at a point, as it is computed: in floating point, and without a proof.

        Parameters
        ----------
        w : (n, d) array, mapping of labels to vectors, data frame or Solution
            Rows by node as in ``solution.coef``; frames, mappings and their vectors are taken by label, as
            ``solution.table()`` has them. Latent nodes may be left out: they are put at the weighted means of their
            neighbours, where squared penalties want them.

        Returns
        -------
        float
            inf where a constraint does not hold to the last bit, or a loss is infinite. (`certify` moves such a point
            to where all constraints hold, and says by how much.)

        Raises
        ------
        ModelError
            Where the shape, a label or an entry is none of this problem.

        Examples
        --------
        >>> abs(problem.value(solution) - solution.objective) <= 1e-9
        True
        """
        form = self.form.frozen()
        with np.errstate(over="ignore", invalid="ignore"):
            return form.primal(given_point(w, "w", form).w)

    @checks.named
    def certify(
        self,
        w: Any,
        flows: Any = None,
        prices: Any = None,
        *,
        gap: float = 1e-6,
        seconds: float | None = None,
        memory: float | None = None,
    ) -> Judgement:
        """The judgement of a point, wherever it comes from: ``Q <= P* <= P(w)``, proved.

        Flows and prices (u, a) that are conserved, K'u + X'a = 0, and within their capacities and domains bound P* from
        below by Q(u, a). They are looked for near w until (P(w) - Q) / max(|P(w)|, |Q|, 1e-3 P_common) is at most
        ``gap``: those that are given, or that the gradients at w have; then those that balance the gradients at the
        kinks near w, within the capacities; then by some hundred rounds of `PrimalDual` from there; then by the exact
        route. So the gap ends near w's own suboptimality P(w) - P*.

        Parameters
        ----------
        w : (n, d) array, mapping of labels to vectors, data frame or Solution
            As in `value`; also of another problem with the same nodes and parameters, such as one before the data
            changed.
        flows : sequence of (m, k) arrays, or mapping of (tail, head), optional
            Of every penalty on edges or nodes, in the order of the terms; one array where there is one, (m,) where k is
            1; or by edge, as ``solution.flows`` has them. Rows of an array are in the order of ``graph.edges()``, and
            positive from the end that comes first in ``solution.labels`` (the tail) to the other. They need not be
            conserved or within capacity: they are repaired, and ``beyond`` says which lay beyond; ``as_given`` is what
            they prove as they are.
        prices : sequence of (samples,) arrays, optional
            Of every loss; those of the gradients at w by default.
        gap : float
            The relative gap that is enough.
        seconds : float, optional
            A budget of time; what was proved until then is returned. The first step has at least a fifth of a second.
        memory : float, optional
            A bound of the bytes that may be taken, as in `solve`: ways to a bound that would take more are left out.

        Returns
        -------
        Judgement
            A Certificate, with ``better`` (a better point, if one was met) and ``steps``.

        Raises
        ------
        ModelError
            Where a shape, a label or an entry is none of this problem.

        Examples
        --------
        >>> problem.certify(problem.solve().coef).holds(1e-6)
        True
        """
        checks.nonnegative(gap, "gap")
        (checks.seconds | None)(seconds, "seconds")
        form = self.form.frozen()
        point, none = given_point(w, "w", form), form.nothing()
        own = None if flows is None else given_flows(flows, form)
        given = none.prices if prices is None and not form.samples else prices  # without losses there are none
        given = None if given is None else given_arrays(given, "prices", none.prices)
        taken = point.flows if own is None else own, point.prices if given is None else given
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            as_given = None if own is None else (own, given)
            return judge(form, Given(point.w, *taken), as_given, gap, allowing(memory, seconds))

    def hash(self) -> str:
        """The hash by which proofs name this problem: of its numbers, labels, columns and terms.

        Returns
        -------
        str
            64 hexadecimal digits (SHA-256), as in ``Proved.hash``: ``graphreg verify proof.json --model HASH`` accepts
            proofs of this problem only. The order of nodes and edges is free, the last bit of every number matters;
            strengths are those of this moment. Proofs by `graphreg.certify` are of a problem of CVXPY, and name that:
            ``gr.certify(problem).hash``.

        Raises
        ------
        ProofError
            Where a term cannot be stated in a proof; it is named.

        Examples
        --------
        >>> problem.solve().prove(folder / "proof.json").hash == problem.hash()
        True
        """
        from .certificate.proof import model_hash

        return model_hash(self.form)

    # ---- the exact route ---------------------------------------------------------------------------------------
    def compile(self, form: str = "primal") -> Compiled:
        """The problem in CVXPY, primal or dual, stacked and sparse, with the numbers that were given: what
        `graphreg.certify` proves of it is proved of the problem, but for the rounding of a strength times a weight.

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
        built = conic.primal(self.form, reduced=False) if form == "primal" else conic.dual(self.form)
        built.refresh()
        return Compiled(built.cvxpy, built.w, built.z, built)

    def oracles(self) -> Oracles:
        """The quantities of the problem that an algorithm written by hand needs: gradients and proxes of the losses,
        proxes of the penalties, the incidence matrix and the weights of the edges, at the strengths of this moment.

        Returns
        -------
        Oracles

        Examples
        --------
        >>> problem.oracles().gradient(problem.solve().coef).shape
        (4, 2)
        """
        return Oracles(self.form.frozen())

    # ---- what may be asked of a problem --------------------------------------------------------------------------
    def methods(self) -> Overview:
        """The methods that apply, what each is predicted to take, what the others lack, and what each needs in general
        and sends in a round.

        A DataFrame with the columns applies, missing, needs, sends, seconds (nan where a method has rounds, whose
        number nobody knows) and gigabytes, which ``print`` shows as text.

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
        'conservation'
        """
        return notation.kkt(self.form)

    def latex(self) -> str:
        """The primal problem in LaTeX: an ``aligned`` block for math mode, with the package amsmath.

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

    def _html(self) -> Iterable[Html]:
        yield title("Problem")
        yield inside(notation.primal(self.form))
        yield details("the dual", inside(self.dual()))
        yield details("the optimality conditions", inside(self.kkt()))


def check_solve(method: Any, form: Form, **given: Any) -> None:
    """Refuse what is no method or does not apply, and what no argument of `Problem.solve` may be; warn of methods whose
    convergence is not guaranteed."""
    METHOD(method, "the method of solve", MethodError)
    if missing := method.lacks(form):
        raise MethodError(f"{method.name} does not apply: " + "; ".join(missing), missing)
    for said in method.unproven(form):
        warn(f"the convergence of {method.label} is not guaranteed: {said}")
    for name, value in given.items():
        ARGUMENTS[name](value, name)


def _check_together(method: AbstractMethod, given: Mapping[str, Any]) -> None:
    """Refuse arguments of `Problem.solve` that the method cannot honour, or that do not go together."""
    for what, why in method.refuses().items():
        if given[what] is not None:
            raise (CheckpointError if what == "checkpoint" else MethodError)(
                f"{why}; leave {what} out, or take another method such as gr.PrimalDual()"
            )
    if given["checkpoint"] is None:
        return
    if given["engine"] is not None:
        raise CheckpointError(
            f"a run with engine={type(given['engine']).__name__}(...) is not kept, since an engine has states or "
            "random numbers of its own; leave checkpoint or engine out"
        )
    if given["observe"] is not None and given["observe"].memory > KEPT:
        raise CheckpointError(
            f"a checkpoint holds at most {KEPT:,} bytes of observations: leave memory out of the Observer, or "
            "leave checkpoint out"
        )


def problem_of(value: Any, taker: str) -> Problem:
    """The problem that was given; anything else is refused."""
    if not isinstance(value, Problem):
        raise ModelError(f"{taker} takes a Problem, got {value!r}; write gr.Problem(model)")
    return value


def _check_labels(model: Model) -> None:
    """Nodes of two terms that only look the same, 1 and '1', are refused; within one graph they are its own affair."""
    sets: list[Labels] = []
    for nodes in (term.labels() for _, term in model.terms):
        if len(nodes) and not any(nodes is other or nodes == other for other in sets):
            sets.append(nodes)
    known = {str(label): label for label in sets[0]} if len(sets) > 1 else {}
    for nodes in sets[1:]:
        for label in nodes:
            other = known.setdefault(str(label), label)
            if other != label and type(other) is not type(label):
                raise GraphError(
                    f"one term has the node {other!r} of type {type(other).__name__}, another the node {label!r} of "
                    f"type {type(label).__name__}: labels are compared as they are; rename those of one"
                )

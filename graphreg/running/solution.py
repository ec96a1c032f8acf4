"""The answer to a problem, with its certificate; what is read off it (tables, clusters, predictions)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import checks
from ..base.clock import cut_short, within
from ..base.display import Html, Shown, details, inside
from ..base.escaping import page
from ..base.shortcuts import shortcut
from ..certificate import Certificate, Clusters, HeldRows, clusters, held_rows
from ..errors import InfeasibleError
from ..form import Form
from ..inputs import Labels
from ..network import Ledger
from ..terms import Array
from .flows import Flows
from .observed import Observed
from .splitting import split, tied_bound, tied_certificate
from .statuses import in_other_units
from .trace import Trace

ANOTHER = "the answer is that of a method that minimises another function, and no gap decides them"

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    from matplotlib.axes import Axes

    from ..base.tables import Table
    from ..certificate.kkt import KKT
    from ..certificate.proof import Proved
    from .summary import Summary


@dataclass(frozen=True)
class Solution(Shown):
    """The result of a solve.

    Attributes
    ----------
    form : Form
        The canonical form that was solved, at the strengths of that moment.
    certificate : Certificate
        Bounds on both sides of the optimum, or the word that there is none.
    status : str
        One of certified, budget, interrupted, no_certificate, unattained, infeasible, failed.
    message : str
        The cause and, where something is left to do, the remedy.
    method : str
    rounds : int
    seconds : float
    trace : Trace
    ledger : Ledger
    seed : int
        Of the random numbers of the run, given or drawn: with it the run can be repeated.
    gathered : dict
        What the method has gathered beside its point, by name; see the method. No certificate speaks of it.
    own : Certificate, optional
        Of a baseline: the certificate of what it itself minimises, on its own nodes; trace and ledger are of that too.
    observed : Observed, optional
        What the observer saw, where there was one. No certificate speaks of it.

    Examples
    --------
    >>> solution.status, solution.certificate.relative_gap <= 1e-6
    ('certified', True)
    >>> solution.coef.shape, solution.clusters().count
    ((4, 2), 2)
    """

    form: Form
    certificate: Certificate
    status: str
    message: str
    method: str
    rounds: int = 0
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)
    ledger: Ledger = field(default_factory=Ledger)
    seed: int = 0
    gathered: dict[str, Any] = field(default_factory=dict)
    own: Certificate | None = None
    observed: Observed | None = None

    @property
    def _answer(self) -> Certificate:
        """The certificate, off which the answer is read; refused where no point satisfies all constraints."""
        if self.status == "infeasible":
            raise InfeasibleError(f"infeasible: there is no answer to read, to save or to prove. {self.message}", self)
        return self.certificate

    @property
    def coef(self) -> Array:
        """The parameters of the user's nodes, (n, d), in node order; of standardised features per standard deviation,
        as the problem has them. As all that is read off the answer, they are refused with `InfeasibleError` where the
        status is infeasible."""
        return self._answer.w[: self.form.space.n_observed]

    @property
    def objective(self) -> float:
        """P at ``coef``: an upper bound of the optimum."""
        return self.certificate.primal

    @property
    def labels(self) -> Labels:
        """The labels of the user's nodes, in node order."""
        return self.form.observed

    @cached_property
    def latent(self) -> dict[Hashable, Array]:
        """The parameters (d,) of the cluster and root nodes that the model introduced, by label."""
        return dict(zip(self.form.latent, self._answer.w[self.form.space.n_observed :], strict=True))

    @cached_property
    def flows(self) -> Flows:
        """The flow of every edge of the certificate's dual point; ``flows.table()`` has what limits it."""
        return Flows(self.form, self._answer)

    @property
    def free(self) -> list[Hashable]:
        """Nodes in a component without any loss: any common value is optimal there, 0 is given."""
        return [label for label, free in zip(self.labels, self.form.free, strict=False) if free]

    @property
    def unreached(self) -> list[Hashable]:
        """Nodes in a component without any loss, the `free` ones among them: no data speak of them, and what is given
        there is what node penalties alone make of them, 0 as a rule."""
        return [label for label, silent in zip(self.labels, self.form.silent, strict=False) if silent]

    def table(self) -> pd.DataFrame:
        """The coefficients, one row per node label and one column per feature (per feature and class, for
        multinomial losses), in the units of the columns where features were standardised.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> solution.table().columns.tolist()
        ['rain', 'temp']
        """
        import pandas as pd

        from ..base.tables import LabelledTable

        index = pd.Index(list(self.labels), dtype=object, name="node", tupleize_cols=False)
        names = list(self.form.space.coordinates)
        pairs = [name for name in names if isinstance(name, tuple)]
        columns = pd.MultiIndex.from_tuples(pairs, names=["feature", "class"]) if pairs else names
        return LabelledTable(self.form.space.in_units(self.coef), index=index, columns=columns)

    def summary(self) -> Summary:
        """The answer on a page: problem, run, certificate, clusters, the size of the coefficients,
        and what it rests on.

        Returns
        -------
        Summary
            ``.facts`` (a dict), ``.coefficients`` (a DataFrame, one row per coordinate) and ``.assumed``.

        Examples
        --------
        >>> list(solution.summary().facts)[:3]
        ['problem', 'model', 'method']
        """
        from .summary import summary

        return summary(self)

    def to_networkx(self) -> nx.Graph:
        """The graph of all terms with the answer on it, latent nodes included.

        Returns
        -------
        networkx.Graph
            Nodes have ``coef`` (a dict by coordinate), ``cluster`` (None for latent nodes), ``latent``, ``free``,
            ``unreached`` and, where terms tie them to the ground, ``to_ground`` (that flow). Edges have ``tail``,
            ``head``, ``flow`` (from tail to head over all terms, a dict by coordinate), ``weight`` (the sum of their
            strengths times weights) and ``states`` (pairs of a term and what `clusters` says of the edge).

        Examples
        --------
        >>> solution.to_networkx().nodes["a"]["cluster"]
        0
        """
        from .summary import to_networkx

        return to_networkx(self)

    @cached_property
    def _clusters(self) -> Clusters:
        found = clusters(self._answer)
        return found if self.own is None or not found.advice else replace(found, advice=ANOTHER, decided_at=0.0)

    @cached_property
    def _proved_clusters(self) -> Clusters:
        certificate, found = self._answer, clusters(self._answer, prove=True)
        if found.certain or found.ended:
            return found
        if self.status == "certified" and self.own is None:
            with cut_short() as ended:
                certificate = shortcut("Solution.nearer")(self, found.decided_at)
            if ended:
                return replace(found, ended=ended[0])
        again = clusters(certificate, prove=True, splitter=split)
        lost = sum(found.edges["certain"]) > sum(again.edges["certain"])
        return replace(found, ended=again.ended) if again.ended and lost else again

    @checks.named
    def clusters(self, prove: bool = False, *, seconds: float | None = None) -> Clusters:
        """The edges that are near, fused, split or undecided, and the clusters that follow; see `Clusters`.

        Parameters
        ----------
        prove : bool
            Whether to look for proofs that edges are fused (exactly, at every optimum) or split. Without it edges are
            decided by what the certificate says at no cost: near by their slack, split by the curvature at their ends.
            A proof of fusion takes about as long as a certificate, and a gap of the order of the slack squared (a
            smaller ``gap`` proves more). Where edges stay open, a certified answer is solved further, to the gap that
            should decide them (at least a hundredth of its own, in ten times its seconds at most), and the table is of
            that point. What is open then costs a conic programme for each pair of clusters, at most 50 of them, the
            largest differences first.
        seconds : float, optional
            A budget of time, for the proofs.

        Returns
        -------
        Clusters
            ``.edges``, ``.labels``, ``.members()``, and ``.certain``: whether every edge is decided. After Ctrl-C, and
            where the time is up, with the proofs found so far, and the word for what cut it short.

        Examples
        --------
        >>> len(solution.clusters().edges)
        3
        """
        (checks.seconds | None)(seconds, "seconds")
        with within(seconds):
            found = self._proved_clusters if checks.switch(prove, "prove") else self._clusters
        if found.ended:
            vars(self).pop("_proved_clusters")  # the next call looks for all
        return found

    @checks.named
    def held(self, prove: bool = False, *, seconds: float | None = None) -> HeldRows:
        """The rows of the penalties that hold at every optimum, those that hold at none, and those that are open: the
        edges between equal nodes, the coefficients that are 0, the knots of a trend, the constraints that are active.

        A row holds where the flows of the optima, which the certificate and conservation bound, lie strictly inside
        the subgradients at 0 or push against a bound; it does not where it is further from 0, and from the bounds, than
        any optimum can be from this answer by the curvature at its nodes. See `HeldRows`.

        Parameters
        ----------
        prove : bool
            Whether to try the rows that are open, at most 50 of them, for a proof that they do not hold: a conic
            programme each.
        seconds : float, optional
            A budget of time, for the proofs.

        Returns
        -------
        HeldRows
            ``.table``, ``.counts`` and ``.keys(state)``. After Ctrl-C, and where the time is up, with the proofs found
            so far; ``.advice`` says what cut it short.

        Raises
        ------
        ProofError
            Where the answer has no certificate.

        Examples
        --------
        >>> sum(solution.held().counts.values())
        3
        """
        (checks.seconds | None)(seconds, "seconds")
        with within(seconds):
            return held_rows(self._answer, tied_bound if checks.switch(prove, "prove") else None)

    def kkt(self) -> KKT:
        """The optimality conditions in numbers: what is missing of each, and at which node or edge most.

        The parts of the gap add up to the certified gap, but for the charge for rounding. Where there is no
        certificate the table says why.

        Returns
        -------
        KKT
            ``.table`` (a DataFrame: condition by condition), ``.total``, ``.gap``, and ``.reason`` where there is none.

        Examples
        --------
        >>> solution.kkt().table["condition"].tolist()[0]
        'prices are slopes of the loss'
        """
        return self.certificate.kkt()

    @checks.named
    def prove(self, path: str | Path, claims: str | Sequence[Any] = (), *, force: bool = False) -> Proved:
        """Write a proof of the bounds of this answer, which anybody can check without graphreg: see docs/proofs.md.

        The dual point of the certificate is balanced exactly and the primal point put exactly inside every constraint;
        both bounds are those of exact arithmetic. ``python -m graphreg.verify PATH`` checks the file; so does the file
        verify.py alone, on a machine without graphreg. The file is put in its place as a whole: a proof that is there
        is replaced, and stays where this fails, or Ctrl-C raises KeyboardInterrupt.

        Parameters
        ----------
        path : path
            Of the file (JSON) to be written.
        claims : sequence of str and tuple
            What else is to be proved. Of every edge of an `L1`, `L2` or `LInf` without a centre for which it is found:
            "near" (how far apart its ends are at most, at every optimum, where that is negligible, as in `clusters`,
            and nothing more is proved), "fused" (exactly equal; needs an exact optimum, which is looked for
            with squared and mean losses), "split" (different at every optimum; one programme per edge, 50 at most).
            Of one edge: ``("split", "a", "b")``, ``("fused", "a", "b")``, ``("near", "a", "b", 0.01)``; with one
            node, of a node penalty. Of other rows of a norm: "near" (how far from 0 at most), "held" (exactly 0; as
            "fused"), of one by its key, as ``("held", "mon", "tue", "wed")``. Of the problem: "unattained" (no
            minimum is attained).
        force : bool
            Replace a file that is no proof, too.

        Returns
        -------
        Proved
            ``lower`` and ``upper`` as fractions, ``hash`` (of the problem), ``path``, ``claims``, and ``statements``,
            which print shows: of each kind of claims that was asked for, the edges, or that none was found.

        Raises
        ------
        ProofError
            Where a term cannot be stated in a proof (it is named), no exact point is found near the certificate's, or
            a claim on one edge, or "unattained", is not proved (the edge is named); where the file cannot be written,
            or something else has its name.

        Examples
        --------
        >>> proved = solution.prove(folder / "proof.json")
        >>> bool(proved.lower <= proved.upper)
        True
        """
        from ..certificate.proof import prove

        return prove(self._answer, path, claims, tied_certificate, force=force)

    def save(self, path: str | Path) -> None:
        """Write the answer to a file, from which `graphreg.load` reads it.

        The file holds the points (parameters, flows, prices), what the solution says of itself, and the fingerprint of
        its problem; no data, trace, ledger or ``gathered``, and no pickles. It is put in its place as a whole; a
        solution that is there is replaced, anything else is not.

        Raises
        ------
        CheckpointError
            Where the file cannot be written, or something else has its name.

        Examples
        --------
        >>> solution.save(folder / "answer.npz")
        >>> gr.load(folder / "answer.npz", problem).objective == solution.objective
        True
        """
        _ = self._answer  # refuses what is none
        shortcut("Solution.save")(self, path)

    @checks.named
    def report(self, file: str | Path, *, positions: Any = None, outlines: Any = None, comparison: Any = None) -> None:
        """Write the answer as one page that opens offline: the model, its dual and its optimality conditions, the
        certificate in words, the graph, every edge with its Fenchel-Young equality, and both bounds by round and bytes.

        Where the run was observed (``solve(observe=("w", "flows"))``) a slider goes through its rounds. See
        docs/reports.md.

        Parameters
        ----------
        file : path
            Of the page (HTML). A report that is there is replaced, anything else is not.
        positions : mapping or DataFrame, optional
            A pair (x, y) per node label, y upwards, or a frame whose first two columns are x and y; a layout is
            computed by default. Latent nodes are put amid their neighbours.
        outlines : mapping, frame, dict or path, optional
            Areas of the nodes: a mapping from labels to rings of points (k, 2), a frame of geopandas, GeoJSON or
            TopoJSON, in which a shape's id or one of its properties is the node's label. As for `plots.plot_map`.
        comparison : Comparison, optional
            Of methods on the same problem, whose bounds are drawn beside those of this run.

        Raises
        ------
        ModelError
            Where a node has no position or no outline (it is named), there is no point that satisfies all constraints,
            or the file cannot be written.

        Examples
        --------
        >>> solution.report(folder / "answer.html")
        """
        shortcut("Solution.report")(self, file, positions, outlines, comparison)

    @checks.named
    def plot(self, ax: Axes | None = None) -> Axes:
        """The certified relative gap against the rounds; after each round where the parameters were observed, as in
        ``problem.solve(gr.ADMM(), observe="w").plot()``. See `plots.plot_trace`.

        Raises
        ------
        ModelError
            Where matplotlib is missing.

        Examples
        --------
        >>> problem.solve(gr.ADMM(), observe="w").plot().get_ylabel()
        'relative gap'
        """
        return shortcut("Solution.plot")(self, ax)

    @checks.named
    def predict(self, frame: Any, kind: str = "response") -> pd.Series | pd.DataFrame:
        """Predictions for the rows of a frame with the columns that the data had (the target is not needed).

        Parameters
        ----------
        frame : DataFrame of pandas or polars, or Table of pyarrow
        kind : {"response", "link", "class"}
            "link" is the linear predictor x'w_i + offset, "response" what the loss at the node makes of it (the
            probability of the second class for logistic losses, the expected count for Poisson losses, ...), "class"
            the class, coded as the data were.

        Returns
        -------
        Series of pandas, or a DataFrame with one column per class for the link and the response of multinomial losses;
        at nodes that no data reach (``unreached``) of the parameters given there, 0 as a rule.

        Raises
        ------
        DataError
            For columns that are missing or cannot be used, nodes that the problem lacks, another ``kind``, and classes
            of a loss that has none.

        Examples
        --------
        >>> solution.predict(frame).shape
        (24,)
        """
        from .summary import predicted

        return predicted(self.form, self.coef, frame, kind)

    @checks.named
    def score(self, frame: Any, by: str = "node") -> Table:
        """The held-out score of the answer: of its predictions of other rows, of each node or of all together.

        Parameters
        ----------
        frame : DataFrame of pandas or polars, Table of pyarrow, or NodeData
            With the columns that the data had, the target included.
        by : {"node", "all"}

        Returns
        -------
        Table
            samples; loss, the weighted mean of the model's own loss, without its scale; and what the loss has:
            accuracy of classes, deviance of counts, mse, and r2 = 1 - mse / variance of the node's own rows (nan where
            these are all alike). The title says whether the answer is certified; the scores themselves are not.

        Raises
        ------
        DataError
            For a problem with several losses, and as for `predict`.

        Examples
        --------
        >>> solution.score(frame).columns.tolist()
        ['samples', 'loss', 'mse', 'r2']
        """
        return shortcut("Solution.score")(self, frame, by)

    def __str__(self) -> str:
        n, d = self.form.space.n_observed, self.form.d
        head = f"{self.method}: {self.status}. {self.message}"
        latent = f" + {len(self.form.latent)} latent nodes" if self.form.latent else ""
        size = f"{n} node{'s' * (n != 1)} x {d} coordinate{'s' if d > 1 else ''}{latent}"
        work = f"{self.ledger.work(self.rounds)}{self.seconds:.3g} s"
        lines = [head, f"objective {self.objective:.10g} ({size}; {work})", str(self.certificate)]
        if self.own is not None:
            lines.append(f"of what {self.method} minimises: {self.own}")
        if self.free:
            lines.append(f"free nodes (no loss in their component; set to 0): {self.free[:5]}")
        if lone := [label for label in self.unreached if label not in self.free]:
            lines.append(f"nodes that no data reach (penalties alone decide there): {lone[:5]}")
        if units := in_other_units(self.form):
            lines.append(units)
        return page("\n".join(lines))

    def __repr__(self) -> str:
        return f"<Solution {self.method}: {self.status}, objective {self.objective:.6g}>"

    def _html(self) -> Iterable[Html]:
        from ..base.tables import as_html

        yield inside(self.summary())
        if self.status != "infeasible":
            yield details("the coefficients of the nodes", as_html(self.table()))
        yield details("the optimality conditions in numbers", inside(self.kkt()))

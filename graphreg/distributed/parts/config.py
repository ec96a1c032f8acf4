"""A method on parts of the graph, in this process; which part each node belongs to."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...base.csgraph import reverse_cuthill_mckee
from ...base.gate import aside
from ...base.messages import missing_entries, unknown_labels, warn
from ...checks import Check, checked, whole
from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration
from ...network import Arcs
from ...running import AbstractEngine
from ...terms import Array
from .coordinator import PartCoordinator, refuse_judges
from .part import Part, part_of
from .worker import ThreadCrew

SITES = Check("a mapping from nodes to sites", lambda given: isinstance(given, Mapping))


@dataclass(frozen=True)
class Parts(AbstractEngine):
    """Run a method on parts of the graph: ``problem.solve(method, engine=gr.Parts(4))``.

    Each part has some nodes with their samples and the edges that touch them, and knows of other nodes what these
    send. Iterates are the same, bit for bit, for any number of parts.

    Parameters
    ----------
    count : int
        The number of parts.
    sites : mapping, optional
        To which site each node belongs; then there is a part for each site.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual(polish=False), engine=gr.Parts(2))
    >>> bool(np.allclose(run.coef, problem.solve(gr.PrimalDual(polish=False)).coef))
    True
    """

    count: int = checked(whole(1), 2)
    sites: Mapping[Hashable, Any] | None = checked(SITES | None, None)

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[PartCoordinator]:
        """The parts of a run."""
        refuse_judges(method)
        owner = owners(form, arcs, self.count, self.sites)
        parts = [part_of(form, arcs, owner == k) for k in range(int(owner.max(initial=0)) + 1)]
        with closing(ThreadCrew(parts, owner, method, seed)) as crew:
            yield PartCoordinator(method, form, parts, crew)


# ---- which part each node belongs to ---------------------------------------------------------------------------------
CROWDED = 1.0  # nodes of others for each own one: a round sends about as much as it computes
MANY = 2_000_000  # arcs, with which METIS takes a second: it hears nobody meanwhile
LARGE = 10_000  # nodes, below which nobody deals out for speed


def dealt(arcs: Arcs, count: int) -> Array:
    """So many parts of about as many nodes each with few edges between them, (n,): by METIS where pymetis is installed
    (the extra ``mpi``), else pieces of the order of reverse Cuthill and McKee, in which neighbours are near one
    another."""
    if count > 1 and find_spec("pymetis") is not None:
        return _by_metis(arcs, min(count, arcs.n))
    entries = np.ones(len(arcs.source), dtype=np.int8), (arcs.source, arcs.target)
    order = reverse_cuthill_mckee(sp.csr_array(entries, shape=(arcs.n, arcs.n)), symmetric_mode=True)
    owner = np.empty(arcs.n, dtype=np.int64)
    for k, some in enumerate(np.array_split(order, min(count, arcs.n))):
        owner[some] = k
    return owner


def _by_metis(arcs: Arcs, count: int) -> Array:
    pymetis = import_module("pymetis")
    order = np.argsort(arcs.source, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(arcs.source, minlength=arcs.n))])
    graph = pymetis.CSRAdjacency(start, arcs.target[order])
    part = partial(aside, pymetis.part_graph) if len(arcs.target) > MANY else pymetis.part_graph
    found = np.array(part(count, graph)[1], dtype=np.int64)
    numbers = np.unique(found, return_inverse=True)[1]  # parts without nodes are none
    return numbers if len(numbers) else found


def owners(form: Form, arcs: Arcs, count: int, sites: Mapping[Hashable, Hashable] | None) -> Array:
    """The number of the part of each node, (n,); ``sites`` says which observed nodes belong together. A latent node is
    where the first of its neighbours is that has a part."""
    if sites is None:
        return dealt(arcs, count)
    observed = form.labels[: form.space.n_observed]
    for said in (*missing_entries("sites", sites, observed), *unknown_labels("sites", sites, observed)):
        raise MethodError(said)
    numbers = {name: k for k, name in enumerate(dict.fromkeys(sites[label] for label in observed))}
    owner = np.full(form.n, -1)
    owner[: len(observed)] = [numbers[sites[label]] for label in observed]
    while (open_ := (owner[arcs.target] < 0) & (owner[arcs.source] >= 0)).any():
        first, place = np.unique(arcs.target[open_], return_index=True)
        owner[first] = owner[arcs.source[open_][place]]
    owner[owner < 0] = 0
    return owner


def share_of_border(part: Part) -> float:
    """The number of nodes of others that a part works with for each of its own."""
    own = int(part.whole.own.sum())
    return (part.form.n - own) / max(own, 1)


def warn_of_border(share: float, n: int) -> None:
    """Say, before a run on n nodes, that dealing them out hardly pays: where some part has more nodes of others than
    of its own, as on graphs without clusters, each round sends about as much as it computes. Small graphs are dealt out
    for other reasons."""
    if share > CROWDED and n >= LARGE:
        warn(
            f"a part works with {share:.1f} nodes of others for each of its own, and every round sends as many rows: "
            "more processes are hardly faster on this graph. Fewer of them send less, and so do sites that follow the "
            "clusters of the graph; see docs/parts.md"
        )

"""A method on parts of the graph, in this process."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...checks import Check, check_fields, checked, whole
from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration
from ...network import Arcs
from ...running import AbstractEngine
from ..base import refuse_judges
from .coordinator import Coordinator
from .dealing import owners
from .part import part_of
from .threads import ThreadCrew

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
    """

    count: int = checked(whole(1), 2)
    sites: Mapping[Hashable, Any] | None = checked(SITES | None, None)

    def __post_init__(self) -> None:
        check_fields(self, MethodError)

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[Coordinator]:
        """The parts of a run."""
        refuse_judges(method)
        owner = owners(form, arcs, self.count, self.sites)
        parts = [part_of(form, arcs, owner == k) for k in range(int(owner.max(initial=0)) + 1)]
        crew = ThreadCrew(parts, owner, method, seed)
        try:
            yield Coordinator(method, form, parts, crew)
        finally:
            crew.close()

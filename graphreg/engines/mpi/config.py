"""A method on parts of the graph, each in a process of an MPI job."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ...checks import check_fields, checked
from ...errors import MethodError
from ...form import Form
from ...methods import AbstractIteration, AbstractMethod
from ...network import Arcs
from ...running import AbstractEngine, Budget, entry, of_problem
from ..base import refuse_judges
from ..parts import Coordinator, owners, part_of
from ..parts.config import SITES
from ..parts.dealing import share_of_border, warn_of_border
from .alike import agreed, call, shared, versions
from .crew import END, Follower, MPICrew
from .job import end_all_with_errors, world

T = TypeVar("T")


@dataclass(frozen=True)
class MPI(AbstractEngine):
    """Run a method on as many parts of the graph as an MPI job has processes: ``mpiexec -n 4 python script.py``, in
    which every process calls ``problem.solve(method, engine=gr.MPI())`` and gets the answer.

    Iterates are those of `Parts`, bit for bit.

    Parameters
    ----------
    sites : mapping, optional
        To which site each node belongs; sites are dealt out to the processes in turn.
    """

    sites: Mapping[Hashable, Any] | None = checked(SITES | None, None)

    def __post_init__(self) -> None:
        check_fields(self, MethodError)
        end_all_with_errors()

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[Coordinator]:
        refuse_judges(method)
        comm = world()
        owner = owners(form, arcs, comm.size, self.sites) % comm.size
        parts = [part_of(form, arcs, owner == k) for k in range(comm.size)]
        warn_of_border(max(map(share_of_border, parts)), form.n)
        crew = MPICrew(comm, parts, owner, method, seed)
        try:
            yield Coordinator(method, form, parts, crew)
        finally:
            crew.close()

    def everywhere(self, form: Form, method: AbstractMethod, budget: Budget, solve: Callable[[], T]) -> T:
        comm = world()
        asked = call(method, budget) | {"sites": entry(self.sites)}
        agreed(comm, lambda: {"versions": versions(), "call": asked, "problem": of_problem(form)})
        if comm.rank:
            found, error = pickle.loads(Follower(comm).serve())
        else:
            found, error = _tried(solve)
            packed, unsent = _packed(found, error)
            comm.bcast((END, True, packed), root=0)
            error = error or unsent
        if error is not None:
            raise shared(error)
        assert found is not None
        return found


def _tried(solve: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return solve(), None
    except Exception as error:  # noqa: BLE001 - all ranks raise it
        return None, error


def _packed(found: Any, error: Exception | None) -> tuple[bytes, MethodError | None]:
    """For the other ranks; and what all raise where it cannot be sent."""
    try:
        return pickle.dumps((found, error)), None
    except Exception as why:  # noqa: BLE001 - of a class of the user's
        said = "the answer cannot be sent to the other ranks" if error is None else f"rank 0: {error!r}"
        unsent = MethodError(f"{said} ({why}); use functions and classes that can be pickled")
        return pickle.dumps((None, unsent)), unsent

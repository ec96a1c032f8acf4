"""What an engine is: a place where methods run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

from ..errors import MethodError
from ..form import Form
from ..methods import AbstractIteration, AbstractMethod
from ..network import Arcs
from ..running import Budget

T = TypeVar("T")


class AbstractEngine(ABC):
    """Where ``problem.solve(method, engine=...)`` runs a method: the driver, with clock and certificates, stays here,
    and the engine carries out its rounds."""

    @abstractmethod
    def hosting(
        self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int
    ) -> AbstractContextManager[AbstractIteration]:
        """The method as it is run there; all that was started for it ends with the context."""

    def everywhere(self, form: Form, method: AbstractMethod, budget: Budget, solve: Callable[[], T]) -> T:
        """What ``solve`` gives for the form, the method and the budget. Where several processes run the same script it
        is called by one of them."""
        del form, method, budget
        return solve()


class AbstractCoordinator(AbstractIteration):
    """A ``method`` as the driver runs it where ``who`` carry out its rounds: its points are gathered."""

    who: ClassVar[str]
    method: AbstractIteration

    @property
    def name(self) -> str:
        return self.method.name

    def centres(self) -> bool:
        return self.method.centres()

    def missing(self, form: Form) -> tuple[str, ...]:
        return self.method.missing(form)

    def held(self, state: Any) -> dict[str, Any]:
        raise MethodError(
            f"what {self.who} hold beside their points stays with them; observe 'w', 'flows' or 'prices', or leave "
            "engine out"
        )


def refuse_judges(method: AbstractIteration) -> None:
    """A method that judges its own answer needs all data in one place."""
    if type(method).judge is not AbstractIteration.judge:
        raise MethodError(
            f"{method.name} has no actors or parts: the problem that it solves follows from what all nodes chose; "
            "leave engine out"
        )

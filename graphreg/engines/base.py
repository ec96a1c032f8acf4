"""A method as the driver runs it where others carry out its rounds."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import MethodError
from ..form import Form
from ..methods import AbstractIteration


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

"""Methods, as the driver knows them, and the engines on which they run.

A method is a frozen configuration that says what it needs; an iterative one steps a state.

``step(state) -> state`` is one communication round and changes nothing in its argument. Loop, clock, stopping and
certificates belong to the driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from inspect import Parameter, isfunction, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from ..base.declaring import declared
from ..base.messages import closest, near
from ..certificate import Certifier
from ..checks import ChecksFields, check_fields, instance, is_number
from ..errors import ArgumentError, MethodError
from ..form import Form
from ..network import Arcs, LocalView
from ..terms import Array

if TYPE_CHECKING:
    from .budget import Budget, Outcome
    from .predicting import Costs
    from .solving import Task

T = TypeVar("T")
Start = tuple[Array, tuple[Array, ...] | None]  # parameters (n, d), and flows where they are known
Point = tuple[Array, tuple[Array, ...] | None, tuple[Array, ...] | None]

LONGEST = 80  # characters of an option in a label


def written(value: object) -> str:
    """An option as it is shown; of a function its name, of what is too long for a label its type."""
    text = str(getattr(value, "__name__", repr(value)))
    return text if len(text) <= LONGEST and "\n" not in text else f"<{type(value).__name__}>"


@cache
def options_of(method: type[AbstractMethod]) -> tuple[Parameter, ...]:
    """The options of a method, in their order."""
    return tuple(signature(method.__init__).parameters.values())[1:]  # the first is self


def check_options(method: type[AbstractMethod], given: Iterable[str]) -> None:
    """Refuse an option that a method does not have; the message says what was probably meant, and which methods have
    one of that name."""
    options = options_of(method)
    if any(each.kind is Parameter.VAR_KEYWORD for each in options):
        return
    known = [each.name for each in options]
    for name in given:
        if name not in known:
            has = {other: [each.name for each in options_of(kind)] for other, kind in declared(AbstractMethod).items()}
            others = [other for other, names in has.items() if name in names]
            more = f"; {name} is an option of {', '.join(others)}" if others else ""
            raise ArgumentError(f"{method.__name__} has no option {name!r}; {near(name, known, 'it has')}{more}")


class AbstractMethod(ABC):
    """A way to solve a problem. ``needs`` and ``sends`` say in a line what it asks of a problem, and what goes across
    an edge in a round."""

    declared_in: ClassVar[str] = "graphreg.methods"  # the folder of those of the library
    needs: ClassVar[str] = ""
    sends: ClassVar[str] = ""
    in_one_pass: ClassVar[bool] = False  # certified without rounds: `Auto` takes it where it applies
    seldom_certified: ClassVar[bool] = False  # and so uses up its budget: `compare` runs it only where it is named
    rows: ClassVar[bool] = False  # penalties and losses of rows of any kind are taken, see `graphreg.w`
    aim: ClassVar[str] = ""  # in a few words what a method minimises in place of the problem, if anything
    classes: ClassVar[int] = 0  # of methods that there are by now: what was found among them holds until there are more

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        AbstractMethod.classes += 1

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuses an option that the method does not have (see `check_options`)."""
        check_options(cls, options)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuses options that are not what their fields say they must be (see `graphreg.checks`)."""
        check_fields(self, MethodError, self.name)

    @abstractmethod
    def missing(self, form: Form) -> tuple[str, ...]:
        """Each requirement that a problem does not meet, as a sentence; empty where the method applies. A method that
        takes no ``rows`` is asked of problems whose rows are all edges."""

    def lacks(self, form: Form) -> tuple[str, ...]:
        """The same, of any problem."""
        if untaken := [edge.name for edge in form.edges if edge.map.edges is None and not self.rows]:
            names = list(dict.fromkeys(untaken))
            have = f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'}"
            return (f"{have} rows that are no edges, and the method takes edges and nodes alone",)
        if form.beside and not self.rows:
            return (f"{form.beside_in_words}, and the method takes one loss at each node and no others",)
        return self.missing(form)

    @abstractmethod
    def run(self, task: Task) -> Outcome:
        """Solve the form of the task within its budget."""

    def refuses(self) -> Mapping[str, str]:
        """The arguments of `Problem.solve` that the method cannot honour, each with the reason: "engine" where no
        actors can carry it out, "checkpoint" where no run can be resumed, "rounds", "callback" and "observe" where it
        has none."""
        return {}

    def unproven(self, form: Form) -> tuple[str, ...]:
        """Each reason why nothing is known of its convergence to the optimum of a problem to which it applies, as a
        sentence that begins small: options beyond their bounds, formulas as they are printed. Its answers are certified
        all the same."""
        return ()

    def cost(self, costs: Costs) -> tuple[float, float]:
        """The seconds that a run is predicted to take, nan where it has rounds, of which nobody knows how many there
        will be, and inf where they are too many to be counted; and the bytes, beside the problem itself."""
        return float("nan"), costs.arrays

    def centres(self) -> bool:
        """True where the method runs around the best common model (where that helps, see
        `graphreg.certificate.center`), and begins there if no start is given: a shift of all targets changes no
        round. Iterations that follow a paper do not, and begin at 0."""
        return False

    def nearer(self, form: Form) -> str:
        """The options to take, "take decreasing=True", where those given may stay at a distance from the optimum of a
        form, however many rounds there are; "" where these lead there."""
        return ""

    @property
    def bias(self) -> str:
        """The options that lead off the optimum of what is minimised, so that no budget reaches it; "" where none
        do."""
        return ""

    @property
    def drawn(self) -> bool:
        """True where its rounds are drawn at random, so that the point keeps moving around its limit."""
        return False

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def label(self) -> str:
        """The name with the options that are not the default ones: ``PrimalDual(balance=1.0)``."""
        if not is_dataclass(self):
            return self.name
        given = [(f.name, getattr(self, f.name)) for f in fields(self) if f.init and f.repr]
        default = {f.name: f.default for f in fields(self) if f.default is not MISSING}
        changed = (key not in default or getattr(value, "ndim", 0) or value != default[key] for key, value in given)
        said = [f"{key}={written(value)}" for (key, value), new in zip(given, changed, strict=True) if new]
        return f"{self.name}({', '.join(said)})" if said else self.name


class AbstractDirectMethod(AbstractMethod):
    """A method that has no rounds; ``refusing`` says why no actors can carry it out, and why no run can be resumed."""

    sends = "nothing: all data are in one place"
    refusing: ClassVar[tuple[str, str]]

    def refuses(self) -> dict[str, str]:
        engine, checkpoint = self.refusing
        return {
            "engine": f"{self.name} has no actors: {engine}",
            "checkpoint": f"{self.name} takes no checkpoint: {checkpoint}",
            "rounds": f"{self.name} has no rounds that could be counted: give seconds=",
            "callback": f"{self.name} has no rounds after which to call",
            "observe": f"{self.name} has no rounds that could be observed",
        }


_METHOD = instance(AbstractMethod, "a method such as gr.PrimalDual()")


def _made(value: object) -> str:
    """The expression to write instead of the class of a method, or of its name."""
    if isfunction(value):
        return "; functions are run by gr.audit and gr.compare, and docs/adding-a-method.md makes a method of a step"
    name = closest(value, declared(AbstractMethod))
    return f"; write {name}()" if name else _METHOD.hint(value)


METHOD = replace(_METHOD, hint=_made)


class AbstractIteration(AbstractMethod):
    """A method that iterates on a local view.

    Its state is a frozen dataclass at the top level of a module and holds all that later rounds depend on, random
    streams included, so that a checkpoint of it is the run (see `checkpoint`): arrays, numbers, strings, None, the
    view, numpy Generators, and tuples, lists, dicts by name and dataclasses of these. What is kept elsewhere (on the
    view, the method, its proxes) must follow from the problem alone. Nothing may depend on the clock.

    A local view may be a part of the graph, so a method reaches beyond its nodes through ``view.engine.exchange`` and
    ``reduce`` alone, in `init` too; what is random comes from ``view.streams``, so that it is the same on any engine.

    Examples
    --------
    >>> issubclass(gr.ADMM, gr.AbstractIteration), issubclass(gr.Exact, gr.AbstractIteration)
    (True, False)
    """

    central: ClassVar[bool] = False  # whether a step takes all data in one place, so that no actors can carry it out
    every: ClassVar[int] = 10  # rounds between two screens, at least
    starting: str = ""  # what is said while the first state is made, where that takes long
    most_rounds: ClassVar[int] = 100_000  # where the caller sets no budget

    def run(self, task: Task) -> Outcome:
        return task.iterate(self, task.budget)

    def refuses(self) -> Mapping[str, str]:
        return {"engine": f"{self.name} has no actors: a step takes all data in one place"} if self.central else {}

    @abstractmethod
    def init(self, view: LocalView, start: Start | None) -> Any:
        """The state before the first round, from ``start`` where it is given."""

    def resume(self, view: LocalView, state: Any, start: Start | None) -> Any:
        """The state before the first round at other strengths of a problem, from the last one there: what is worth
        keeping beside ``start``, which is near both."""
        return self.init(view, start)

    @abstractmethod
    def step(self, state: Any) -> Any:
        """The state after one more round."""

    def steps(self, state: Any, count: int) -> tuple[Any, int]:
        """The state after one more round, or several at once where that is faster, and how many they were: at most
        ``count``. Nobody looks at those between."""
        return self.step(state), 1

    def polishes(self) -> bool:
        """True where the driver may try to guess the fused differences and solve the rest (see `polish`)."""
        return False

    def inside_flows(self, state: Any) -> tuple[Array, ...] | None:
        """Flows that are strictly inside their capacities where differences vanish at the optimum, and at their
        capacities elsewhere, as far as the state knows; None where it does not."""
        return self.point(state)[1] if self.polishes() else None

    @abstractmethod
    def point(self, state: Any) -> Point:
        """The parameters, and the flows and prices where the method has them, to be certified."""

    def judge(self, state: Any, certifier: Certifier) -> Certifier:
        """The certifier of the point: of a method whose problem depends on what it finds, one of that problem."""
        return certifier

    def early(self, state: Any) -> bool:
        """True where it is too early to look at the point, to certify it and stop: the method has yet to make a
        choice."""
        return False

    def known_gap(self, state: Any) -> tuple[float, float] | None:
        """About the relative gap that the point will be certified to, and the objective, where the state itself tells
        them, so that nothing need be screened; None elsewhere."""

    def over(self, state: Any) -> bool:
        """True where no further round would lead anywhere, as the state itself tells."""
        return False

    def without_messages(self) -> str:
        """Why it cannot go on at all where nodes crash or messages are lost; empty where it can."""
        return ""

    def held(self, state: Any) -> dict[str, Array | tuple[Array, ...]]:
        """The state of the method between two rounds, for observers: the numbers in it by the names of their
        fields, ``theta``, ``x.w``, ``copies.u``."""
        return dict(_numbers(state, ""))

    def lighten(self, state: Any) -> None:
        """Give back memory that only rounds need: a proof of this state follows."""

    def gathered(self, state: Any) -> dict[str, Any]:
        """The findings of the method beside its point (averages, moments, assignments), by name: numbers, or arrays
        with one row per node of the view."""
        return {}


def _numbers(value: Any, name: str) -> Iterator[tuple[str, Array | tuple[Array, ...]]]:
    """The numbers in a record with their names; a tuple of arrays as it is."""
    if isinstance(value, (np.ndarray, np.generic)) or is_number(value):
        yield name, np.asarray(value)
    elif isinstance(value, tuple) and len(value) and all(isinstance(each, np.ndarray) for each in value):
        yield name, value
    elif is_dataclass(value) and not isinstance(value, LocalView):
        for each in fields(value):
            yield from _numbers(getattr(value, each.name), f"{name}.{each.name}" if name else each.name)
    elif isinstance(value, (tuple, list)):
        for k, each in enumerate(value):
            yield from _numbers(each, f"{name}[{k}]")


ONE_ENGINE = (
    "a run has one engine, and liars cannot be put on a lossy network: take gr.Malicious(nodes), where clients may be "
    "away by availability= of their method, gr.FedAvg(availability=0.8), or gr.Actors(faults=...) without liars"
)


class AbstractEngine(ChecksFields, ABC):
    """The place in which ``problem.solve(method, engine=...)`` runs a method: the driver, with clock and
    certificates, stays here, and the engine carries out its rounds."""

    def remedy(self, form: Form, method: AbstractMethod) -> str:
        """What to do where a run of a method does not end at the optimum of a form for a reason of the engine's, if it
        has one."""
        return ""

    @property
    def liars(self) -> Sequence[Hashable]:
        """The nodes that send something else than their method says: what these end with is not scored."""
        return ()

    @abstractmethod
    def hosting(
        self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int
    ) -> AbstractContextManager[AbstractIteration]:
        """The method as it is run there; all that was started for it ends with the context."""

    def everywhere(self, form: Form, method: AbstractMethod, budget: Budget, solve: Callable[[], T]) -> T:
        """The value of ``solve`` for the form, the method and the budget. Where several processes run the same
        script it is called by one of them."""
        return solve()

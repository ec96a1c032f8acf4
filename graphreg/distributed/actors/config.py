"""Actors: every node owns its data and a mailbox, and sees only what its neighbours sent."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...base.messages import unknown_labels, warn
from ...checks import Check, checked, inside, instance, is_whole
from ...errors import MethodError
from ...form import Form, SampleBlock
from ...methods import AbstractIteration, AbstractMethod, ToleratesLostMessages
from ...network import Arcs
from ...running import ONE_ENGINE, AbstractEngine
from ...terms import Matrix
from ..parts import refuse_judges
from .actor import split
from .coordinator import ActorCoordinator
from .faults import FaultPlan, Faults
from .threads import RunSettings, Threads

if TYPE_CHECKING:
    from .processes import Processes


def refuse_rows(method: AbstractIteration, form: Form) -> None:
    """Refuse the rows of which no message may be lost: see `graphreg.methods.splitting._lossy`, where one line of a row
    sees one number of a node, and all steps of a row are one."""
    for block in form.unlike_edges:
        if isinstance(block, SampleBlock):
            why = "is a loss of rows"
        elif not isinstance(method, ToleratesLostMessages):
            why = f"has rows that are no edges, and {method.name} tolerates no loss there"
        elif not cast(Matrix, block.map).plain:
            why = "has rows that mix numbers of a node, or whose numbers have steps of different lengths"
        else:
            continue
        raise MethodError(
            f"{block.name} {why}: its messages have to arrive, take resend=True without crashes, or leave faults out"
        )


TOLERANT = "take Faults(resend=True), or a method that tolerates loss, such as PrimalDual"
PROCESSES = Check(
    "True, False or a number >= 1", lambda given: isinstance(given, bool) or (is_whole(given) and given >= 1)
)


@dataclass(frozen=True)
class Actors(AbstractEngine):
    """Run a method with every node as an isolated actor: ``problem.solve(method, engine=gr.Actors())``.

    Each actor has the samples of its node, the edges that touch it and a mailbox. It sees of others what they send
    across edges; the iterates are those of the whole arrays, to rounding. Latent nodes are actors too. Points are
    gathered by a coordinator, which certifies them as on any engine, starts rounds and ends the run. There is no polish
    (``PrimalDual(polish=True)`` does without): it needs all data in one place; nor are there checkpoints.

    Parameters
    ----------
    processes : bool or int
        False (default): threads of this process. True: one process per node. A number: so many processes, each with
        about as many nodes. They have neither the memory of this process nor run its script again; classes and
        functions of the model that they cannot import are sent as code, with a warning that names them.
    faults : Faults, optional
        What goes wrong on purpose.
    timeout : float
        Seconds that the coordinator waits for a sign of any actor before it ends the run with an error that says who
        waits for whom, or of whom nothing is heard.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual(polish=False), engine=gr.Actors())
    >>> alone = problem.solve(gr.PrimalDual(polish=False))
    >>> bool(np.allclose(run.coef, alone.coef)), run.ledger.messages == alone.ledger.messages
    (True, True)
    """

    processes: bool | int = checked(PROCESSES, False)
    faults: Faults | None = checked(instance(Faults, "gr.Faults(...)") | None, None)
    timeout: float = checked(inside("(0, inf)", "a positive number of seconds"), 60.0)
    elsewhere = dict.fromkeys(("malicious", "liars"), ONE_ENGINE)

    @contextmanager
    def hosting(self, method: AbstractIteration, form: Form, arcs: Arcs, seed: int) -> Generator[ActorCoordinator]:
        """The actors of a run; gone at the end, however it ends. A Ctrl-C after the last round breaks nothing off."""
        if self.faults is not None and self.faults.lossy:
            refuse_rows(method, form)
        parts = split(form, arcs)
        settings = RunSettings(self._under_faults(method), seed, self._fault_plan(form, seed), float(self.timeout))
        hosts: Threads | Processes
        if self.processes is False:
            hosts = Threads(parts, settings)
        else:
            from .processes import Processes

            hosts = Processes(parts, settings, len(parts) if self.processes is True else int(self.processes))
        try:
            yield ActorCoordinator(settings, form, parts, hosts)
        except BaseException:
            hosts.close()
            raise
        try:
            hosts.close()
        except KeyboardInterrupt:
            hosts.close()

    def remedy(self, form: Form, method: AbstractMethod) -> str:
        if self.faults is None or not self.faults.lossy or isinstance(method, ToleratesLostMessages):
            return ""
        return f"lost messages may lead off the optimum, however many rounds there are: {TOLERANT}"

    def _under_faults(self, method: AbstractIteration) -> AbstractIteration:
        """The method as it is run under these faults; a warning where nothing is known of it there."""
        refuse_judges(method)
        if self.faults is None or not self.faults.lossy:
            return method
        if isinstance(method, ToleratesLostMessages):
            return method.for_lost_messages()
        if why := method.without_messages():
            raise MethodError(f"{method.name} does not run where nodes crash or messages are lost: {why}")
        warn(
            f"{method.name} is not known to tolerate lost messages: the last value received stands in for one that is "
            f"missing, and the run may end at a biased point; {TOLERANT}"
        )
        return method

    def _fault_plan(self, form: Form, seed: int) -> FaultPlan | None:
        if self.faults is None:
            return None
        place = {label: i for i, label in enumerate(form.labels)}
        for said in unknown_labels("crashes of Faults", self.faults.crashes, place):
            raise MethodError(said)
        planned = {place[label]: tuple(t) for label, t in self.faults.crashes.items()}
        return FaultPlan(self.faults, seed, planned, form.space.n_observed)

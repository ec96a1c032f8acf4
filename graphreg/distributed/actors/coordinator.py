"""All actors of a run as one method that the driver can run, and the coordinator that gives the orders."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from queue import Empty
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...base.clock import OutOfTimeError, left
from ...base.messages import few, users_line
from ...errors import ActorError, GraphregError
from ...form import Form
from ...methods import Start
from ...network import PURPOSES, Ledger, LocalView
from ...terms import Array
from ..parts import AbstractCoordinator, CoordinatorState
from .actor import COORDINATOR, ActorAnswer, NodePart
from .faults import Tag
from .mailbox import DOWN, Message, WaitError
from .threads import Reply, RootSum, RunSettings, Threads, Warned

if TYPE_CHECKING:
    from .processes import Processes

HASTE = 0.5  # seconds that actors have to answer where the run is to end
LATER = 0.5  # seconds that actors have to say what they waited for when they are stopped
GLANCE = 0.25  # seconds


class ActorCoordinator(AbstractCoordinator):
    """A method, carried out by actors.

    The coordinator starts rounds, gathers points to be certified and decides when to stop: the role of the driver. What
    it gathers is recorded as certificates are on any engine. There is no polish: it needs all data in one place.
    """

    who = "actors"
    unheard = (KeyboardInterrupt, OutOfTimeError)  # the run ends before anything was heard

    def __init__(
        self, settings: RunSettings, form: Form, parts: tuple[NodePart, ...], hosts: Threads | Processes
    ) -> None:
        self.method, self.form, self.parts, self.hosts = settings.method, form, parts, hosts
        self.starting = getattr(hosts, "starting", "")  # processes take seconds to start, threads nothing
        self.patience = settings.patience
        self.interrupted = False
        self._nodes = range(len(parts))
        self.roots = [part.node for part in parts if part.tree.beyond]
        self.number = 0  # of the last order
        self.sums: dict[Tag, dict[int, Array]] = {}  # of components, that wait for those of others
        self.ledger: Ledger | None = None
        self.known: tuple[int, list[ActorAnswer]] | None = None  # the last answers, and of which round

    # ---- what the driver asks for ------------------------------------------------------------------------------------
    def init(self, view: LocalView, start: Start | None) -> CoordinatorState:
        self.ledger = view.engine.ledger
        self._ask("init", dict(enumerate(part.start(start) for part in self.parts)))
        return CoordinatorState(0)

    def step(self, state: CoordinatorState) -> CoordinatorState:
        self._ask("step", dict.fromkeys(self._nodes, state.round + 1))
        return CoordinatorState(state.round + 1)

    # ---- putting together ----------------------------------------------------------------------------------------
    def _answers(self, state: CoordinatorState) -> list[ActorAnswer]:
        """The answers after this round; the last that are known where the run is to end and actors do not answer at
        once."""
        if self.known is None or self.known[0] != state.round:
            try:
                answers = self._ask("answer", dict.fromkeys(self._nodes, state.round))
                self.known = state.round, [answers[i] for i in self._nodes]
                self._update_ledger(self.known[1])
            except OutOfTimeError:
                if self.known is None:
                    raise (KeyboardInterrupt if self.interrupted else OutOfTimeError) from None
        return self.known[1]

    def _update_ledger(self, answers: Sequence[ActorAnswer]) -> None:
        """The ledger of what all actors have sent so far."""
        ledger = self.ledger
        if ledger is None or ledger.arcs is None:
            return
        arcs = ledger.arcs
        place = {pair: k for k, pair in enumerate(zip(arcs.source.tolist(), arcs.target.tolist(), strict=True))}
        away = np.array([each.tally.away for each in answers], dtype=np.int64)
        for purpose in PURPOSES[:2]:
            account = ledger.accounts[purpose]
            account.messages, account.numbers, account.lost = np.zeros((3, len(arcs.source)), dtype=np.int64)
            account.beyond = account.beyond_numbers = 0
            for i, answer in enumerate(answers):
                for (what, receiver), (messages, numbers, lost) in answer.tally.sent.items():
                    if what == purpose and receiver == COORDINATOR:
                        account.beyond += messages
                        account.beyond_numbers += numbers
                    elif what == purpose:
                        account.messages[place[i, receiver]] += messages
                        account.numbers[place[i, receiver]] += numbers
                        account.lost[place[i, receiver]] += lost
        ledger.accounts["method"].away = away if away.any() else None

    # ---- orders ------------------------------------------------------------------------------------------------------
    def _ask(self, what: str, arguments: Mapping[int, Any]) -> dict[int, Any]:
        """The replies of all actors; raises what one of them raised, and names those of whom nothing is heard.

        After a Ctrl-C actors finish what they were ordered to do, and replies to earlier orders are ignored. For that
        an order reaches all of them, or none.
        """
        self.number += 1
        try:
            self.hosts.order(self.number, what, arguments)
            return self._replies(HASTE if what == "answer" else 0.0)
        except KeyboardInterrupt:
            self.interrupted = True
            self.hosts.order(self.number, what, arguments)
            raise

    def _replies(self, grace: float) -> dict[int, Any]:
        """The replies to the last order. Where the run is to end now, they have ``grace`` seconds."""
        out: dict[int, Any] = {}
        remaining = 0.0 if self.interrupted else left()
        until = math.inf if remaining is None else time.monotonic() + max(remaining, grace)
        while len(out) < len(self.parts):
            try:
                item = self._hear(until)
            except Empty:
                self._fail([], out)
            if isinstance(item, RootSum):
                self._add(item)
            elif isinstance(item, Warned):
                warnings.warn(item.text, item.category, stacklevel=users_line())
            elif isinstance(item, Reply) and item.error is not None:
                self._fail([item], out)
            elif isinstance(item, Reply) and item.number == self.number and not item.stopped:
                out[item.node] = item.value
        return out

    def _hear(self, until: float) -> Any:
        """The next item that anybody says; `Empty` where all have been silent for ``timeout`` seconds.

        Patience is counted in glances and not by the clock, which goes on while this process itself is stopped.
        """
        for _ in range(math.ceil(self.patience / GLANCE)):
            rest = until - time.monotonic()
            try:
                return self.hosts.replies.get(timeout=max(min(GLANCE, rest), 0.0))
            except Empty:
                if rest <= GLANCE:
                    raise OutOfTimeError from None
        raise Empty

    def _add(self, item: RootSum) -> None:
        """Sums of components, added in the order of their roots."""
        known = self.sums.setdefault(item.tag, {})
        known[item.node] = item.total
        if len(known) < len(self.roots):
            return
        del self.sums[item.tag]
        total = known[self.roots[0]]
        for root in self.roots[1:]:
            total = total + known[root]
        for root in self.roots:
            self.hosts.put(root, Message(DOWN, COORDINATOR, root, item.tag, 0, np.array(total)))

    def _fail(self, failed: list[Reply], out: Mapping[int, Any]) -> NoReturn:
        """Stop all actors, and raise what went wrong: the first error by number, unless there are only some that waited
        when they were stopped, and nodes that say nothing at all, not even that they have stopped."""
        self.hosts.stop()
        waited_for = set(self._nodes) - set(out) - {reply.node for reply in failed}
        silent, until = set(waited_for), time.monotonic() + LATER
        while silent and (rest := until - time.monotonic()) > 0:
            try:
                item = self.hosts.replies.get(timeout=rest)
            except Empty:
                break
            if isinstance(item, Reply):
                silent.discard(item.node)
                failed += [item] if item.error is not None else []
        failed.sort(key=lambda reply: (isinstance(reply.error, WaitError), reply.node))
        if not failed or (isinstance(failed[0].error, WaitError) and silent):
            nodes = sorted(silent or waited_for)
            names = few([repr(self.form.labels[i]) for i in nodes])
            raise ActorError(
                f"nothing is heard of the node{'s' * (len(nodes) > 1)} {names} within timeout={self.patience:g} "
                "seconds: stopped, hanging, or at work for longer, for which a larger timeout= helps"
            )
        assert failed[0].error is not None
        raise _for_user(failed[0].error, failed[0].node, tuple(self.form.labels)) from failed[0].error


def _for_user(error: BaseException, node: int, labels: tuple[Hashable, ...]) -> BaseException:
    """The error of an actor as the user gets it, with the label of the node."""
    if node < 0:
        return error
    where = f"the actor of the node {labels[node]!r}"
    if isinstance(error, WaitError):
        at, call = error.tag
        sender = "the coordinator" if error.sender == COORDINATOR else f"the node {labels[error.sender]!r}"
        when = f"round {at}" if at else "the setup"
        return ActorError(f"{where} waits for {sender} in vain (exchange {call} of {when}); a larger timeout= may help")
    if isinstance(error, (GraphregError, Warning)):
        return type(error)(f"{error} (raised by {where})")
    return ActorError(f"{where} failed: {type(error).__name__}: {error}")

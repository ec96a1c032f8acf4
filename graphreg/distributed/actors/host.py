"""A process that hosts actors: it has the parts of its nodes, and pipes to the coordinator and to neighbours."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from ...base.breakdown import cause
from ...errors import ActorError
from .actor import NodePart
from .mailbox import Message
from .threads import LEAVE, Reply, RunSettings, Threads, Warned

STOP = "stop"
END = "end"  # of all replies
Routes = dict[int, int]  # the process of each node


def live(link: Any, peers: dict[int, Any]) -> None:
    """The life of the process; ``link`` leads to the coordinator, whose end is its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's affair
    try:
        routes, bundle = link.recv(), link.recv_bytes()
    except (EOFError, OSError):
        return
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            parts, settings = pickle.loads(bundle)
        except Exception as error:  # noqa: BLE001 - whatever a class of the user's makes of it
            said = f"a process could not read the part of the model that it was sent ({cause(error)})"
            with suppress(OSError):
                link.send([Reply(-1, 0, error=ActorError(said))])
            return
        del bundle
        Host(parts, settings, link, peers, routes, warned).run()


class Host:
    """Passes on what comes in and what goes out, for the actors of one process.

    Each actor has a thread; the main thread reads the pipes, so that nobody who writes to it ever blocks for long.
    """

    def __init__(
        self,
        parts: Sequence[NodePart],
        settings: RunSettings,
        link: Any,
        peers: dict[int, Any],
        routes: Routes,
        warned: list[warnings.WarningMessage],
    ) -> None:
        self.link, self.peers, self.routes, self.warned = link, peers, routes, warned
        self.locks = {h: threading.Lock() for h in peers}
        self.actors = Threads(parts, settings, self._carry)
        self._reporter = threading.Thread(target=self._report, daemon=True)
        self._reporter.start()

    def run(self) -> None:
        sources = [self.link, *self.peers.values()]
        while True:
            ready = wait(sources)
            for source in [each for each in sources if each in ready]:
                try:
                    item = source.recv()
                except (EOFError, OSError):
                    if source is self.link:  # the coordinator is gone
                        return
                    sources.remove(source)
                    continue
                if source is not self.link:
                    self.actors.deliver(Message(*item))
                elif item[0] == STOP:
                    self.actors.close()
                    self.actors.replies.put(END)
                    self._reporter.join(LEAVE)
                    return
                else:
                    getattr(self.actors, item[0])(*item[1:])

    def _carry(self, message: Message) -> None:
        h = self.routes[message.receiver]
        if h not in self.peers:
            self.actors.deliver(message)
            return
        with suppress(OSError), self.locks[h]:  # where that process has ended the coordinator knows
            self.peers[h].send(tuple(message))

    def _report(self) -> None:
        """Replies to the coordinator, as many at once as there are."""
        items: list[Any] = []
        while not (items and items[-1] is END):
            items = [self.actors.replies.get()]
            while not self.actors.replies.empty():
                items.append(self.actors.replies.get())
            outgoing = [*self._warnings(), *(_portable(item) for item in items if item is not END)]
            try:
                self.link.send(outgoing)
            except OSError:
                return

    def _warnings(self) -> list[Any]:
        outgoing, self.warned[:] = list(self.warned), []
        return [
            Warned(each.category if _travels(each.category) else UserWarning, str(each.message)) for each in outgoing
        ]


def _portable(item: Any) -> Any:
    """A reply that can be sent: an error that cannot goes as its words."""
    if isinstance(item, Reply) and item.error is not None and not _travels(item.error):
        return Reply(item.node, item.number, error=RuntimeError(f"{type(item.error).__name__}: {item.error}"))
    return item


def _travels(value: Any) -> bool:
    """True for a value that the coordinator can be sent."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # noqa: BLE001 - whatever its class makes of it
        return False
    return True

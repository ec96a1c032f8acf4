"""Problems for the tests of actors, and runs of a method on arrays and by actors beside each other."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from dataclasses import dataclass, replace

import numpy as np

import graphreg as gr
from graphreg.distributed import InProcess
from graphreg.distributed.actors.actor import Actor
from graphreg.distributed.actors.threads import Threads
from graphreg.errors import MethodError
from graphreg.methods import METHODS, AbstractIteration
from graphreg.network.arcs import arcs_of
from graphreg.network.ledger import Ledger
from graphreg.network.view import LocalView

ITERATIONS = [method for method in METHODS if isinstance(method, AbstractIteration) and not method.central]
FIXED = [
    gr.PrimalDual(balance=0.5),
    gr.ADMM(rho=2.0, relaxation=1.0),
    gr.FedADMM(batch=2, availability=0.6),
    gr.FedADMM(availability=0.5, while_away="ipw"),
    gr.SubgradientDescent(batch=2, average="suffix"),
    gr.AsyncL2GD(batch=1),
]
KINDS = ("total variation", "logistic", "features", "squared", "consensus", "quantile", "tree", "parts", "hierarchy")


def problem(kind, seed=0, n=6, m=5):
    """Of n nodes (a multiple of 3) with three features and m samples each, in three groups."""
    import networkx as nx  # not in every process of a run

    rng = np.random.default_rng([seed, n])
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.3, seed=seed)
    node = np.repeat(range(n), m)
    X, truth = rng.standard_normal((n * m, 3)), np.repeat(rng.standard_normal((3, 3)), n // 3, axis=0)
    eta = np.einsum("ij,ij->i", X, truth[node])
    data = gr.NodeData.from_arrays(X, eta + 0.3 * rng.standard_normal(n * m), node)
    tv = gr.TotalVariation
    if kind == "logistic":
        data = gr.NodeData.from_arrays(X, (eta + rng.logistic(size=n * m) > 0).astype(int), node)
        model = gr.LogisticLoss(data) + 0.1 * tv(graph, gr.L2()) + 1e-2 * gr.NodePenalty(gr.SquaredL2())
    elif kind == "features":
        model = gr.SquaredLoss(data) + 0.2 * tv(graph, gr.L1(), features=["x0", "x2"]) + 0.01 * gr.NodePenalty(gr.L1())
    elif kind == "squared":
        model = gr.SquaredLoss(data) + 0.5 * tv(graph, gr.SquaredL2())
    elif kind == "consensus":
        model = gr.SquaredLoss(data) + gr.Consensus(graph)
    elif kind == "quantile":
        model = gr.QuantileLoss(data, tau=0.3) + 0.1 * tv(graph, gr.L2())
    elif kind in ("tree", "hierarchy"):
        clusters = {f"c{k}": list(range(k * n // 3, (k + 1) * n // 3)) for k in range(3)}
        more = gr.NodePenalty(gr.Ball(10.0)) if kind == "tree" else 0.1 * gr.NodePenalty(gr.SquaredL2())
        model = gr.SquaredLoss(data) + gr.Hierarchy(clusters, (1.0, 0.3)) + more
    elif kind == "parts":  # three components, one of them a node alone
        graph = nx.Graph([(i, i + 1) for i in range(n - 2) if i != n // 2])
        graph.add_nodes_from(range(n))
        model = gr.HuberLoss(data, delta=0.5) + 0.2 * tv(graph, gr.LInf()) + 0.1 * tv(graph, gr.HuberNorm(0.5))
    else:
        model = gr.SquaredLoss(data) + 0.2 * tv(graph, gr.L2())
    return gr.Problem(model)


def row():
    """Seven nodes in a row, by names; the third is node 'c'."""
    import networkx as nx

    data = gr.NodeData.from_arrays(np.eye(7), np.arange(7.0), list("abcdefg"))
    return gr.Problem(gr.SquaredLoss(data) + gr.TotalVariation(nx.path_graph(list("abcdefg")), gr.L2()))


def whole(form, seed=1):
    return LocalView(form, InProcess(Ledger(arcs_of(form), form.labels)), seed)


@dataclass
class Run:
    """Points after each round (with the first), what was gathered, and the ledger."""

    points: list
    gathered: dict
    ledger: Ledger


def on_arrays(method, form, rounds, seed=1):
    view = whole(form, seed)
    with np.errstate(over="ignore", invalid="ignore"):
        state = method.init(view, None)
        points = [method.point(state)]
        for _ in range(rounds):
            state = method.step(state)
            points.append(method.point(state))
    return Run(points, method.gathered(state), view.engine.ledger)


def by_actors(method, form, rounds, seed=1, **options):
    view = whole(form, seed)
    with gr.Actors(timeout=20.0, **options).hosting(method, form, view.engine.ledger.arcs, seed) as coordinator:
        coordinator_state = coordinator.init(view, None)
        points = [coordinator.point(coordinator_state)]
        for _ in range(rounds):
            coordinator_state = coordinator.step(coordinator_state)
            points.append(coordinator.point(coordinator_state))
        gathered = coordinator.gathered(coordinator_state)
    return Run(points, gathered, view.engine.ledger)


def deviation(one, two):
    """The largest difference of parameters, and of flows, relative to the largest entries of a run."""
    worst = 0.0
    for select in (lambda point: [point[0]], lambda point: list(point[1] or [])):
        first, second = ([select(point) for point in run.points] for run in (one, two))
        size = max((float(np.abs(a).max(initial=0.0)) for each in first for a in each), default=0.0)
        for mine, theirs in zip(first, second, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                worst = max(worst, float(np.abs(a - b).max(initial=0.0)) / max(size, 1e-300))
    return worst


def children(parent):
    """Processes by number, with their command lines; those that have ended but for their exit code are none."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    return {int(pid): rest[0] for pid, above, stat, *rest in rows if int(above) == parent and stat[0] != "Z"}


def starters_of(parent):
    return [pid for pid, command in children(parent).items() if "starter.py" in command]


def hosts_of(parent):
    """The processes that host actors of the runs in a process, in the order of their nodes."""
    return sorted(host for starter in starters_of(parent) for host in children(starter))


def nothing_is_left():
    """Neither a process nor a thread of a run in this process."""
    assert not starters_of(os.getpid())
    assert not [t for t in threading.enumerate() if t.name.startswith(("actor of", "coordinator"))]


def sentinels_in(pid, sentinels):
    """The places of those bytes that are found anywhere in the memory of a process, but for what is mapped from files
    of programs: that nobody writes. It is read by pieces that overlap, and most of them are zero."""
    found, piece, more = set(), 1 << 19, max(map(len, sentinels)) - 1
    blank = bytes(piece + more)
    with open(f"/proc/{pid}/maps") as regions, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in regions:
            span, rights, *_ = line.split()
            low, high = (int(number, 16) for number in span.split("-"))
            if rights[0] == "r" and ("w" in rights or "s" in rights):
                for begin in range(low, high, piece):
                    with contextlib.suppress(OSError, ValueError):  # what even the kernel does not let anybody read
                        memory.seek(begin)
                        text = memory.read(min(piece + more, high - begin))
                        found |= {k for k, each in enumerate(sentinels) if text != blank and each in text}
    return sorted(found)


def gap(solution):
    return solution.certificate.relative_gap


@dataclass(frozen=True)
class Breaking(gr.PrimalDual):
    how: str = "raise"

    def step(self, state):
        if state.round == 3 and state.view.ids[state.view.own][0] == 2:
            if self.how == "raise":
                raise ZeroDivisionError("no reason")
            if self.how == "refuse":
                raise MethodError("not with me")
            return replace(state, round=4)  # without sending anything
        return super().step(state)


@dataclass
class Seen:
    """All messages and all actors of the runs of a test."""

    messages: list
    actors: list


def watch(monkeypatch):
    seen = Seen([], [])
    carry, begin = Threads.deliver, Actor.__init__

    def watched(self, message):
        seen.messages.append(message)
        carry(self, message)

    def noted(self, *args):
        begin(self, *args)
        seen.actors.append(self)

    monkeypatch.setattr(Threads, "deliver", watched)
    monkeypatch.setattr(Actor, "__init__", noted)
    return seen

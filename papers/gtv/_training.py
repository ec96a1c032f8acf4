"""Section VI-C: the networks (40) of all nodes, in PyTorch, and how the compared methods train them. Not convex."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np

import graphreg as gr

from ._images import Array, Images

Curve = list[float]
NO_STRENGTH = 1e-12  # lambda = 0 with the steps 1/deg_i of Algorithm 1: no lambda at all would leave the edges out
PULL = 5.0  # of pFedMe towards the server's model, about that of a node's neighbours in Algorithm 1
RATE = 0.003  # of Adam


def _torch() -> Any:
    return import_module("torch")


@contextmanager
def one_thread() -> Generator[None]:
    """PyTorch on one thread, so that sums have one order and a seed gives the same numbers."""
    torch = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def network(rng: np.random.Generator, pixels: int, hidden: int, classes: int) -> Any:
    """W_2 ReLU(W_1 x) of (40) with random weights; the softmax is in the loss."""
    nn, random = _torch().nn, _torch().random
    with random.fork_rng(devices=[]):
        random.manual_seed(int(rng.integers(2**62)))
        return nn.Sequential(nn.Linear(pixels, hidden, bias=False), nn.ReLU(), nn.Linear(hidden, classes, bias=False))


def loss(outputs: Any, label: Any) -> Any:
    """L_i below (40), with y in one-hot form: y log h + (1 - y) log(1 - h), summed over the classes."""
    functional = _torch().nn.functional
    y = functional.one_hot(label, outputs.shape[1]).to(outputs.dtype)
    return functional.binary_cross_entropy(outputs.softmax(1), y, reduction="sum") / len(label)


def accuracy(outputs: Any, label: Any) -> Any:
    """The share of images whose class has the largest probability."""
    return (outputs.argmax(1) == label).to(outputs.dtype).mean()


@dataclass(frozen=True)
class Training:
    """The common part of all methods: networks, start, graph, gradient steps in each round. Each gives a curve: the
    accuracy on the validation sets before the first round and after each."""

    images: Images
    graph: nx.Graph
    hidden: int
    inner: int
    step: float
    rounds: int
    local: gr.neural.LocalNetworks
    validation: gr.neural.LocalNetworks

    @staticmethod
    def of(rng: np.random.Generator, images: Images, graph: nx.Graph, **chosen: Any) -> Training:
        """``chosen``: hidden, inner, step, rounds."""
        module = network(rng, images.X.shape[2], chosen["hidden"], images.classes)
        optimizer = partial(_torch().optim.SGD, lr=chosen["step"])
        sets = zip((images.X, images.X_val), (images.label, images.label_val), (loss, accuracy), strict=True)
        local, validation = (
            gr.neural.LocalNetworks(module, dict(enumerate(zip(X, y, strict=True))), of, optimizer, chosen["inner"])
            for X, y, of in sets
        )
        return Training(images, graph, **chosen, local=local, validation=validation)

    def _accuracy(self, w: Array) -> float:
        return float(self.validation.losses(w).mean())

    def _trained(self, penalty: Any = None, method: Any = None) -> Curve:
        curve: Curve = []

        def look(k: int, w: Array) -> None:
            curve.append(self._accuracy(w))

        gr.neural.train(self.local, penalty, rounds=self.rounds, method=method, callback=look)
        return curve

    def algorithm_1(self, lam: float) -> Curve:
        """With the l2 norm; (32) is inexact."""
        return self._trained((lam or NO_STRENGTH) * gr.TotalVariation(self.graph, gr.L2()))

    def pfedme(self) -> Curve:
        return self._trained(method=gr.PFedMe(lam=PULL))

    def ifca(self, k: int, rng: np.random.Generator) -> Curve:
        return [self._accuracy(w) for w in islice(self.ifca_rounds(k, rng), self.rounds + 1)]

    def ifca_rounds(self, k: int, rng: np.random.Generator) -> Iterator[Array]:
        """IFCA with averages of models (Ghosh et al. 2020, Algorithm 1, option II): every node takes the model with the
        least loss and steps by itself; the server averages those that took it."""
        n, (_, _, pixels) = len(self.images.X), self.images.X.shape
        drawn = (network(rng, pixels, self.hidden, self.images.classes) for _ in range(k))
        models = np.stack([replace(self.local, module=module).start for module in drawn])
        while True:
            taken = np.argmin([self.local.losses(np.tile(model, (n, 1))) for model in models], axis=0)
            yield models[taken]
            w = self.local.near(models[taken], np.full(n, np.inf), models[taken])
            models = np.stack([w[taken == j].mean(axis=0) if (taken == j).any() else models[j] for j in range(k)])

    def adam(self, lam: float) -> Curve:
        """A general optimiser of PyTorch on (16), with as many steps in a round."""
        torch = _torch()
        tail, head, A = (torch.tensor(each) for each in zip(*self.graph.edges(data="weight"), strict=True))
        w = torch.tensor(np.tile(self.local.start, (len(self.images.X), 1)), dtype=torch.float32, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=RATE)
        curve = [self._accuracy(w.detach().numpy())]
        for _ in range(self.rounds):
            for _ in range(self.inner):
                optimizer.zero_grad()
                variation = (A * torch.linalg.vector_norm(w[tail] - w[head], dim=1)).sum()
                (self.local.values(w).sum() + lam * variation).backward()
                optimizer.step()
            curve.append(self._accuracy(w.detach().numpy()))
        return curve

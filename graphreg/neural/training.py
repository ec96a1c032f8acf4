"""Networks of all nodes trained together, by the steps of the library's methods. Not convex: no certificate.

    minimise over w    sum_i f_i(w_i)  +  penalties of the differences w_i - w_j,    f_i(w_i) = loss(h(X_i; w_i), y_i)

h is a `torch.nn.Module`, the same at all nodes, and w_i are its parameters at node i, in a row. `train` runs the steps
of `gr.PrimalDual` as they are (GTV minimisation, Algorithm 1 and section VI-C); only the prox of f_i is an optimizer's
of PyTorch, and inexact.

A network is no loss of a `gr.Problem`, on purpose. What a Problem promises is a certificate, which rests on conjugates
f_i*. That of a function that is not convex is the conjugate of its convex hull, which nobody can compute here; and what
an optimizer finds in the place of a prox proves nothing. So networks have a front door of their own, and what comes
back through it has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks
from ..base.messages import unknown_labels
from ..errors import DataError, FailedError, MethodError, TermError
from ..form import Form, lower, with_latent_means
from ..methods import PrimalDual
from ..methods.baselines import AbstractBaseline, PFedMe
from ..network import InProcess, Ledger, LocalView, of_losses
from ..oracles import AbstractNodeProx, Memory
from ..terms import Array, Model, Space
from ..terms.losses import AbstractLoss
from .local_networks import LocalNetworks

STATUS = "not convex: no certificate"
METHODS = (PrimalDual, PFedMe)  # whose nodes reach their losses by the prox alone
METHOD = checks.Check("PrimalDual(...) or PFedMe(...)", lambda given: isinstance(given, METHODS))


@dataclass(frozen=True)
class _InexactProx(AbstractNodeProx):
    """`LocalNetworks.near`, as the prox of the nodes that have data."""

    nodes: Array
    networks: LocalNetworks

    def __call__(self, v: Array, tau: Array, warm: Array, memory: Memory) -> tuple[Array, Memory]:
        return self.networks.near(v, tau, warm), None

    def curvature(self) -> Array:
        return np.zeros(len(self.nodes))  # not known: a balance that adapts begins at 1


@dataclass(frozen=True)
class _NetworkView(LocalView):
    """A graph whose nodes have networks in the place of samples."""

    networks: LocalNetworks | None = None

    @of_losses
    def proxes(self) -> tuple[AbstractNodeProx, ...]:
        assert self.networks is not None
        return (_InexactProx(np.arange(len(self.networks.data)), self.networks),)  # the first nodes: see _form


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of `train`: networks, and no bounds.

    Attributes
    ----------
    labels : tuple
        The nodes: those that have data, in the order of the data, and then the others of the graph.
    w : (n, d)
        Their parameters.
    objectives : tuple of float
        The objective before the first round and after each. Nothing is known of its minimum.
    status : str
        "not convex: no certificate".
    certificate : None

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> data = {node: (torch.randn(20, 3), torch.randint(2, (20,))) for node in "abcd"}
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> local = gr.neural.LocalNetworks(torch.nn.Linear(3, 2), data, torch.nn.functional.cross_entropy, sgd)
    >>> len(gr.neural.train(local, rounds=20).objectives)
    21
    """

    networks: LocalNetworks
    labels: tuple[Hashable, ...]
    w: Array
    objectives: tuple[float, ...]
    method: str
    status: str = STATUS
    certificate: None = None

    @property
    def objective(self) -> float:
        """The last objective."""
        return self.objectives[-1]

    def network(self, node: Hashable) -> Any:
        """The network of a node, a copy of the module with its parameters.

        Returns
        -------
        torch.nn.Module

        Raises
        ------
        DataError
            For a label that is no node.
        """
        for said in unknown_labels("network(...)", [node], self.labels):
            raise DataError(said)
        return self.networks.network(self.w[self.labels.index(node)])

    def __str__(self) -> str:
        rounds = len(self.objectives) - 1
        return f"{self.status} (objective {self.objective:.6g} after {rounds} rounds of {self.method})"


@checks.named
def train(
    networks: LocalNetworks,
    penalty: Any = None,
    *,
    rounds: int,
    method: PrimalDual | PFedMe | None = None,
    callback: Callable[[int, Array], Any] | None = None,
) -> Trained:
    """Train the networks of all nodes together: ``sum_i f_i(w_i)`` plus penalties, by rounds of a method.

    Not convex: no certificate. What is found depends on where the module begins, and nothing is known of the minimum.

    Parameters
    ----------
    networks : LocalNetworks
    penalty : term or sum of terms, optional
        Such as ``0.1 * gr.TotalVariation(graph, gr.L2())``, with ``features=["0.weight"]`` of these parameters alone.
        Nodes of the graph without data follow their neighbours. None: every network for itself.
    rounds : int
        Exactly so many.
    method : PrimalDual or PFedMe, optional
        By default Algorithm 1 of GTV minimisation, ``PrimalDual(balance=1, relaxation=1)``, whose steps 1/deg_i suit
        losses with a curvature of about 1.
    callback : callable, optional
        ``callback(k, w)`` before the first round (k = 0) and after each, w (n, d): rows of the nodes that have data, in
        the order of ``networks.labels``, and then of the others. What it raises ends the training, is passed on, and
        leaves no result: keep the w that you want.

    Returns
    -------
    Trained

    Raises
    ------
    TermError
        Where the penalty has a loss.
    DataError
        For data at a node that the graph lacks.
    MethodError
        For a method that does not apply.
    FailedError
        Where parameters are no longer finite; the node is named.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> data = {node: (torch.randn(20, 3), torch.randint(2, (20,))) for node in "abcd"}
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> local = gr.neural.LocalNetworks(torch.nn.Linear(3, 2), data, torch.nn.functional.cross_entropy, sgd)
    >>> trained = gr.neural.train(local, 0.1 * gr.TotalVariation(graph, gr.L2()), rounds=20)
    >>> trained.status
    'not convex: no certificate'
    >>> trained.network("a")
    Linear(in_features=3, out_features=2, bias=True)
    """
    checks.instance(LocalNetworks, "a LocalNetworks")(networks, "networks")
    checks.count(rounds, "rounds")
    chosen = PrimalDual(balance=1.0, relaxation=1.0) if method is None else method
    form = _form(networks, Model(()) if penalty is None else Model.of(penalty))
    METHOD(chosen, "method", MethodError)
    if isinstance(chosen, PrimalDual) and chosen.inexact is not None:
        raise MethodError("how inexact the networks are is said by their optimizer and steps; leave out inexact")
    if missing := chosen.missing(form):
        raise MethodError(f"{chosen.name} does not apply: {'; '.join(missing)}", missing)
    baseline = isinstance(chosen, AbstractBaseline)
    target, iteration = (chosen.target(form), chosen.iteration) if baseline else (form, chosen)
    view, n = _NetworkView(target, InProcess(Ledger()), networks=networks), form.space.n_observed
    state = iteration.init(view, (np.tile(networks.start, (target.n, 1)), None))
    objectives, w = list[float](), np.zeros(form.shape)
    for k in range(rounds + 1):
        state = iteration.step(state) if k else state
        w = iteration.point(state)[0]
        if baseline:  # without its servers, and with the latent nodes of the penalty
            w = with_latent_means(form, np.pad(w[:n], ((0, form.n - n), (0, 0))))
        lost = np.flatnonzero(~np.isfinite(w).all(axis=1))
        if len(lost):
            raise FailedError(
                f"the parameters at the node {form.labels[lost[0]]!r} are not finite after round {k}; let the "
                "optimizer take smaller steps"
            )
        objectives.append(float(networks.losses(w[: len(networks.data)]).sum()) + form.primal(w))
        if callback is not None:
            callback(k, w[:n])
    return Trained(networks, tuple(form.labels[:n]), w[:n], tuple(objectives), chosen.label)


def _form(networks: LocalNetworks, model: Model) -> Form:
    """The edges of the penalties, over the parameters of the networks; no samples."""
    for _, term in model.terms:
        if isinstance(term, AbstractLoss):
            raise TermError(
                f"train takes penalties, got the loss {term.called()}; the losses are those of the networks"
            )
    nodes = dict.fromkeys(label for _, term in model.terms for label in term.labels())
    for said in unknown_labels("data", networks.labels, nodes) if nodes else ():
        raise DataError(said)
    index = {label: i for i, label in enumerate(dict.fromkeys((*networks.labels, *nodes)))}
    return lower(model, Space(index, networks.coordinates, np.arange(networks.d)))

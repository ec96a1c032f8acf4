"""Neural networks at the nodes: PyTorch modules, tied along the edges of a graph. Not convex: no certificate.

    minimise over w    sum_i f_i(w_i)  +  penalties of the differences w_i - w_j,       f_i(w_i) = loss(h(X_i; w_i), y_i)

h is a `torch.nn.Module`, the same at all nodes, and w_i are its parameters at node i, in a row. `train` runs the steps of
`gr.PrimalDual` as they are (GTV minimisation, Algorithm 1 and section VI-C); only the prox of f_i is a PyTorch
optimiser's, and inexact.

A network is no loss of a `gr.Problem`, on purpose. What a Problem promises is a certificate, which rests on conjugates
f_i*; of a function that is not convex the conjugate is that of its convex hull, and a lower bound from it would say
nothing, or, where an optimiser stands in for the prox, something false. So networks have a front door of their own, and
what comes back of it has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from . import checks
from .errors import DataError, FailedError, MethodError, ModelError, TermError
from .form import Form, lower
from .messages import unknown_labels
from .methods import AbstractBaseline, PFedMe, PrimalDual
from .network import InProcess, Ledger, LocalView, of_losses
from .oracles import AbstractNodeProx, Memory
from .terms import Array, Model, Space
from .terms.losses import AbstractLoss

STATUS = "not convex: no certificate"
METHODS = (PrimalDual, PFedMe)  # whose nodes reach their losses by the prox alone

__all__ = ["LocalNetworks", "Trained", "train"]


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ModelError("networks need PyTorch, which is not installed: pip install graphreg[torch]") from None


@dataclass(frozen=True, eq=False)
class LocalNetworks:
    """Local models ``f_i(w_i) = loss(module(X_i), y_i)`` with w_i the parameters of the module at node i.

    All nodes begin at the parameters that the module has: networks that began apart have nothing to share along an
    edge, as their hidden units stand in different orders. Parameters with ``requires_grad=False`` are no part of w and
    stay as they are. The module itself is not changed.

    Parameters
    ----------
    module : torch.nn.Module
        Called with X_i; without random numbers (``module.eval()`` turns dropout off) and without statistics that a
        call changes (batch normalisation in training).
    data : mapping
        (X_i, y_i) per node label, tensors or arrays. What has decimals becomes of the module's type, the rest (classes,
        tokens) stays.
    loss : callable
        ``loss(outputs, y_i)``, one number: `torch.nn.functional.cross_entropy`, for instance, a mean over samples.
    optimizer : callable
        ``optimizer([parameters])``, a new one in every round: ``partial(torch.optim.SGD, lr=0.1)``.
    steps : int
        How many steps it takes in a round; 5 by default.

    Raises
    ------
    ModelError
        Where PyTorch is not installed, and for a module or a loss that is none.
    DataError
        Where the module or the loss fails at a node, which is named, or gives no finite number.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> data = {node: (torch.randn(20, 3), torch.randint(2, (20,))) for node in "abcd"}
    >>> sgd = partial(torch.optim.SGD, lr=0.1)
    >>> local = gr.neural.LocalNetworks(torch.nn.Linear(3, 2), data, torch.nn.functional.cross_entropy, sgd)
    >>> local.d
    8
    """

    module: Any
    data: Mapping[Hashable, tuple[Any, Any]]
    loss: Callable[[Any, Any], Any] = checks.checked(checks.function("a function of outputs and targets"))
    optimizer: Callable[[list[Any]], Any] = checks.checked(checks.function("a function that makes an optimizer"))
    steps: int = checks.checked(checks.count, 5)

    def __post_init__(self) -> None:
        torch = _torch()
        checks.instance(torch.nn.Module, "a torch.nn.Module")(self.module, "module", ModelError, "LocalNetworks")
        checks.check_fields(self, ModelError)
        if not self._trained:
            raise ModelError("LocalNetworks(module=...) has no parameters that require a gradient: nothing to train")
        if not self.data:
            raise DataError("LocalNetworks(data=...) has no node; give {label: (X, y)}")
        for label, (X, y) in self._tensors.items():
            try:
                value = self.loss(self.module(X), y)
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                raise DataError(f"the module or the loss fails at the node {label!r}: {error}") from error
            if value.shape != ():
                raise DataError(f"the loss at the node {label!r} has the shape {tuple(value.shape)}; take its mean or sum")
            if not torch.isfinite(value):
                raise DataError(f"the loss at the node {label!r} is {float(value)} at the module's parameters")

    # ---- parameters in a row -----------------------------------------------------------------------------------------
    @cached_property
    def _trained(self) -> dict[str, Any]:
        """The parameters that w holds, by name."""
        return {name: each.detach() for name, each in self.module.named_parameters() if each.requires_grad}

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The nodes that have data, in the order of the rows of w."""
        return tuple(self.data)

    @property
    def d(self) -> int:
        """How many parameters a network has."""
        return sum(each.numel() for each in self._trained.values())

    @property
    def start(self) -> Array:
        """The parameters of the module, (d,)."""
        return _array(_torch().cat([each.reshape(-1) for each in self._trained.values()]))

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        """The coordinates of w: the name of a parameter of the module, and the place in it. ``features=["0.weight"]`` of
        a penalty are all entries of that parameter."""
        return tuple((name, k) for name, each in self._trained.items() for k in range(each.numel()))

    def _named(self, row: Any) -> dict[str, Any]:
        """The parameters by name, of a row of w."""
        parts = row.split([each.numel() for each in self._trained.values()])
        return {name: part.reshape(each.shape) for (name, each), part in zip(self._trained.items(), parts, strict=True)}

    def network(self, row: Array) -> Any:
        """A copy of the module with the parameters w_i, (d,).

        Returns
        -------
        torch.nn.Module
        """
        module = deepcopy(self.module)
        module.load_state_dict(self._named(self._tensor(row)), strict=False)
        return module

    def _tensor(self, values: Any) -> Any:
        """A tensor of what is given, on the device of the parameters, and of their type where it has decimals."""
        torch, like = _torch(), next(iter(self._trained.values()))
        given = values.detach() if isinstance(values, torch.Tensor) else torch.tensor(np.asarray(values))
        return given.to(like) if given.is_floating_point() else given.to(like.device)

    # ---- losses, of all nodes at once --------------------------------------------------------------------------------
    @cached_property
    def _tensors(self) -> dict[Hashable, tuple[Any, Any]]:
        return {label: (self._tensor(X), self._tensor(y)) for label, (X, y) in self.data.items()}

    @cached_property
    def _batches(self) -> list[tuple[list[int], Any, Any]]:
        """Nodes whose data have the same shapes, by number, and their data, stacked."""
        groups: dict[Any, list[int]] = {}
        every = list(self._tensors.values())
        for i, (X, y) in enumerate(every):
            groups.setdefault((X.shape, X.dtype, y.shape, y.dtype), []).append(i)
        stack = _torch().stack
        return [(rows, stack([every[i][0] for i in rows]), stack([every[i][1] for i in rows])) for rows in groups.values()]

    def values(self, w: Any) -> Any:
        """f_i(w_i) at a tensor w (n, d), which PyTorch can differentiate.

        Returns
        -------
        torch.Tensor
            (n,)
        """
        func = _torch().func

        def one(row: Any, X: Any, y: Any) -> Any:
            return self.loss(func.functional_call(self.module, self._named(row), (X,)), y)

        each = func.vmap(one)
        found = [(rows, each(w[rows], X, y)) for rows, X, y in self._batches]
        out = _torch().cat([values for _, values in found])
        return out[np.argsort(np.concatenate([rows for rows, _ in found]))]

    def losses(self, w: Array) -> Array:
        """f_i(w_i) at w (n, d).

        Returns
        -------
        (n,) array
        """
        with _torch().no_grad():
            return _array(self.values(self._tensor(w)))

    def near(self, v: Array, tau: Array, begin: Array) -> Array:
        """Near the prox of f_i, argmin f_i(w) + 1/(2 tau_i) ||w - v_i||^2: ``steps`` steps of the optimizer.

        The optimizer sees the sum over all nodes; one that moves each number by its own derivatives (SGD, Adam) does at
        each node what it would do there alone.

        Parameters
        ----------
        v, begin : (n, d)
            ``begin`` is where the optimizer begins.
        tau : (n,)
            inf: no pull towards v.

        Returns
        -------
        (n, d) array
        """
        w = self._tensor(begin).clone().requires_grad_()
        pulled, weight = self._tensor(v), self._tensor(1.0 / tau[:, None])
        optimizer = self.optimizer([w])

        def evaluated() -> Any:
            optimizer.zero_grad()
            value = self.values(w).sum() + 0.5 * (weight * (w - pulled) ** 2).sum()
            value.backward()
            return value

        for _ in range(self.steps):
            optimizer.step(evaluated)
        return _array(w.detach())


def _array(tensor: Any) -> Array:
    return tensor.cpu().numpy().astype(float)


# ---- training --------------------------------------------------------------------------------------------------------
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
        index = self.form.space.index
        return (_InexactProx(np.array([index[label] for label in self.networks.labels]), self.networks),)


@dataclass(frozen=True, eq=False)
class Trained:
    """What `train` found: networks, and no bounds.

    Attributes
    ----------
    labels : tuple
        The nodes.
    w : (n, d)
        Their parameters.
    objectives : tuple of float
        The objective before the first round and after each. Nothing is known of its minimum.
    status : str
        "not convex: no certificate".
    certificate : None
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
    """Train the networks of all nodes together: ``sum_i f_i(w_i)`` plus penalties, by rounds of a method of the library.

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
        ``callback(k, w)`` before the first round (k = 0) and after each, w (n, d).

    Returns
    -------
    Trained

    Raises
    ------
    TermError
        Where the penalty has a loss, or a part that stands on no edge and no node.
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
    _check_method(chosen, form)
    target, iteration = (chosen.target(form), chosen.iteration) if isinstance(chosen, AbstractBaseline) else (form, chosen)
    view = _NetworkView(target, InProcess(Ledger()), networks=networks)
    state = iteration.init(view, (np.tile(networks.start, (target.n, 1)), None))
    rows, objectives, w = view.proxes[0].nodes, list[float](), np.zeros((0, 0))
    for k in range(rounds + 1):
        state = iteration.step(state) if k else state
        w = iteration.point(state)[0][: form.n]
        lost = np.flatnonzero(~np.isfinite(w).all(axis=1))
        if len(lost):
            raise FailedError(
                f"the parameters at the node {form.labels[lost[0]]!r} are not finite after round {k}; take smaller steps "
                "in the optimizer"
            )
        objectives.append(float(networks.losses(w[rows]).sum()) + form.primal(w))
        if callback is not None:
            callback(k, w[: form.space.n_observed])
    n = form.space.n_observed
    return Trained(networks, tuple(form.space.index), w[:n], tuple(objectives), chosen.label)


def _form(networks: LocalNetworks, model: Model) -> Form:
    """The edges of the penalties, over the parameters of the networks; no samples."""
    for _, term in model.terms:
        if isinstance(term, AbstractLoss):
            raise TermError(f"train takes penalties, got the loss {term.called()}; the losses are those of the networks")
    nodes = dict.fromkeys(label for _, term in model.terms for label in term.nodes())
    index = {label: i for i, label in enumerate(nodes or networks.labels)}
    for said in unknown_labels("data", networks.labels, index):
        raise DataError(said)
    return lower(model, Space(index, networks.coordinates, np.arange(networks.d)))


def _check_method(method: Any, form: Form) -> None:
    checks.instance(METHODS, "PrimalDual(...) or PFedMe(...)")(method, "method", MethodError)
    if isinstance(method, PrimalDual) and method.inexact is not None:
        raise MethodError("how inexact the networks are is said by their optimizer and steps; leave out inexact")
    missing = method.missing(form)
    if missing:
        raise MethodError(f"{method.name} does not apply: {'; '.join(missing)}", missing)

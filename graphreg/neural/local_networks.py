"""Local models that are PyTorch modules: their parameters in rows, their losses, and their prox by an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from .. import checks
from ..errors import DataError, ModelError
from ..terms import Array

DATA = checks.Check("a mapping {label: (X, y)} of some nodes", lambda data: isinstance(data, Mapping) and len(data) > 0)


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise ModelError("networks need PyTorch, which is not installed: pip install graphreg[torch]") from None


@dataclass(frozen=True, eq=False)
class LocalNetworks:
    """Local models ``f_i(w_i) = loss(module(X_i), y_i)``, with w_i the parameters of the module at node i.

    All nodes begin at the parameters that the module has: networks that began apart have nothing to share along an
    edge, as their hidden units stand in different orders. Parameters with ``requires_grad=False`` are no part of w and
    stay as they are. The module itself is not changed.

    Parameters
    ----------
    module : torch.nn.Module
        Called with X_i; without random numbers (``module.eval()`` turns dropout off) and without statistics that a
        call changes (batch normalisation in training).
    data : mapping
        (X_i, y_i) per node label, tensors or arrays. Floats become of the module's type; classes and tokens stay whole
        numbers.
    loss : callable
        ``loss(outputs, y_i)``, one number: `torch.nn.functional.cross_entropy`, for instance, a mean over samples.
    optimizer : callable
        ``optimizer([parameters])``, a new one in every round: ``partial(torch.optim.SGD, lr=0.1)``.
    steps : int
        How many steps it takes in a round; 5 by default.

    Raises
    ------
    ModelError
        Where PyTorch is not installed, and for a module, a loss or an optimizer that is none.
    DataError
        Where the data, the module or the loss fail at a node, which is named.

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
    data: Mapping[Hashable, tuple[Any, Any]] = checks.checked(DATA)
    loss: Callable[[Any, Any], Any] = checks.checked(checks.function("a function of outputs and targets"))
    optimizer: Callable[[list[Any]], Any] = checks.checked(checks.function("a function that makes an optimizer"))
    steps: int = checks.checked(checks.count, 5)

    def __post_init__(self) -> None:
        torch = _torch()
        checks.instance(torch.nn.Module, "a torch.nn.Module")(self.module, "module", ModelError, "LocalNetworks")
        checks.check_fields(self, ModelError)
        if not self._trained:
            raise ModelError("LocalNetworks(module=...) has no parameters that require a gradient: nothing to train")
        for label in self.data:
            with torch.no_grad():
                value = self._tried(label)
            if value.shape != ():
                raise DataError(
                    f"the loss at the node {label!r} has the shape {tuple(value.shape)}; take its mean or its sum"
                )
            if not torch.isfinite(value):
                raise DataError(f"the loss at the node {label!r} is {float(value)} at the module's parameters")

    def __repr__(self) -> str:
        return f"<LocalNetworks: {len(self.data)} nodes, {self.d} parameters each; gr.neural.train trains them>"

    def _tried(self, label: Hashable) -> Any:
        """The loss of a node at the parameters that the module has."""
        try:
            X, y = (self._tensor(each) for each in self.data[label])
            return self.loss(self.module(X), y)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise DataError(f"the data, the module or the loss fail at the node {label!r}: {error}") from error

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
        """The number of parameters of a network."""
        return sum(each.numel() for each in self._trained.values())

    @property
    def start(self) -> Array:
        """The parameters of the module, (d,)."""
        return _array(_torch().cat([each.reshape(-1) for each in self._trained.values()]))

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        """The coordinates of w: the name of a parameter of the module, and the place in it. ``features=["0.weight"]``
        of a penalty are all entries of that parameter."""
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

        Examples
        --------
        >>> from functools import partial
        >>> import torch
        >>> data = {"a": (torch.ones(1, 3), torch.zeros(1, 1))}
        >>> sgd = partial(torch.optim.SGD, lr=0.1)
        >>> local = gr.neural.LocalNetworks(torch.nn.Linear(3, 1), data, torch.nn.functional.mse_loss, sgd)
        >>> local.network(np.arange(4.0)).bias.item()
        3.0
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
    def _batches(self) -> list[tuple[list[int], Any, Any]]:
        """Nodes whose data have the same shapes, by number, and their data, stacked."""
        every = [(self._tensor(X), self._tensor(y)) for X, y in self.data.values()]
        groups: dict[Any, list[int]] = {}
        for i, (X, y) in enumerate(every):
            groups.setdefault((X.shape, X.dtype, y.shape, y.dtype), []).append(i)
        stacked = [[_torch().stack([every[i][k] for i in rows]) for k in (0, 1)] for rows in groups.values()]
        return [(rows, X, y) for rows, (X, y) in zip(groups.values(), stacked, strict=True)]

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
        try:
            found = _torch().cat([each(w[rows], X, y) for rows, X, y in self._batches])
        except RuntimeError as error:
            if "random operation" in str(error):
                raise ModelError(
                    "LocalNetworks(module=...) or its loss draws random numbers, which nodes that are computed at once "
                    "cannot; module.eval() turns dropout off"
                ) from error
            raise
        return found[np.argsort(np.concatenate([rows for rows, _, _ in self._batches]))]

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

"""`graphreg new`: a file with a penalty or a loss of one's own that obeys the laws as it stands, to be changed."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

import click

import graphreg as gr

from ..errors import ModelFileError
from . import exits
from .program import main

PENALTY = '''\
"""The penalty NAME. Change the four methods, and run this file: it checks them and solves a small problem."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import graphreg as gr
import graphreg.testing


@dataclass(frozen=True)
class NAME(gr.Penalty):  # gr.AbstractOneSided where phi(-z) is not phi(z), gr.AbstractNorm for a norm
    """phi(z) = sum_j |z_j| + ridge/2 z_j^2: differences of neighbours are 0 where they can be, and else small."""

    ridge: float = 1.0

    def value(self, z):
        """phi of each row of an (m, k) array, (m,): convex, >= 0, and 0 at z = 0."""
        return np.abs(z).sum(axis=1) + self.ridge / 2 * (z**2).sum(axis=1)

    def prox(self, v, step):
        """For each row the p that minimises step * phi(p) + 1/2 ||p - v||^2; step is a number or one per row."""
        t = np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0) / (1.0 + t * self.ridge)

    def conjugate(self, u):
        """sup over z of <u, z> - phi(z) for each row; +inf outside its domain, with np.where(inside, ..., np.inf)."""
        return (np.maximum(np.abs(u) - 1.0, 0.0) ** 2).sum(axis=1) / (2.0 * self.ridge)

    def cvxpy(self, Z):
        """phi in CVXPY, one value per row of the (m, k) expression Z."""
        return cp.sum(cp.abs(Z), axis=1) + self.ridge / 2 * cp.sum(cp.square(Z), axis=1)


def example() -> gr.Problem:
    """Eight nodes in a row, in two halves that differ."""
    rng = np.random.default_rng(0)
    truth = np.repeat([[1.0, 0.0], [-1.0, 0.5]], 4, axis=0)
    X = rng.normal(size=(8, 10, 2))
    y = np.einsum("nmd,nd->nm", X, truth) + 0.2 * rng.normal(size=(8, 10))
    data = gr.NodeData.from_dict({i: (X[i], y[i]) for i in range(8)})
    return gr.Problem(gr.SquaredLoss(data) + 0.1 * gr.TotalVariation(gr.Graph.chain(8), NAME()))


if __name__ == "__main__":
    print(gr.testing.check_penalty(NAME()))
    print(example().solve())
    print(example().solve(gr.PrimalDual()))
'''

LOSS = '''\
"""The loss NAME. Change the five methods, and run this file: it checks them and solves a small problem."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import graphreg as gr
import graphreg.testing


@dataclass(frozen=True)
class NAME(gr.Loss):
    """l(x; y) = sqrt(1 + (x - y)^2) - 1: a square near the target y, |x - y| far from it."""

    def value(self, x, y):
        """l of each sample, (M,), at the predictors x (M,) and the targets y (M,)."""
        r = x - y
        return r**2 / (1.0 + np.sqrt(1.0 + r**2))  # free of cancellation near 0

    def gradient(self, x, y):
        """The derivative of l in x."""
        r = x - y
        return r / np.sqrt(1.0 + r**2)

    def curvature(self, x, y):
        """The second derivative of l in x, >= 0."""
        return (1.0 + (x - y) ** 2) ** -1.5

    def conjugate(self, b, y):
        """sup over x of b x - l(x; y) for each sample; +inf outside its domain."""
        inside = np.abs(b) <= 1.0
        c = np.where(inside, b, 0.0) ** 2
        return np.where(inside, c / (1.0 + np.sqrt(1.0 - c)) + b * y, np.inf)

    def cvxpy(self, x, y):
        """l in CVXPY, one value per sample."""
        return cp.norm(cp.vstack([np.ones(x.shape), x - y]), 2, axis=0) - 1.0

    def smoothness(self):
        """The largest curvature."""
        return 1.0


def example() -> gr.Problem:
    """Eight nodes in a row, in two halves that differ, and a target in ten that is far off."""
    rng = np.random.default_rng(0)
    truth = np.repeat([[1.0, 0.0], [-1.0, 0.5]], 4, axis=0)
    X = rng.normal(size=(8, 10, 2))
    y = np.einsum("nmd,nd->nm", X, truth) + 0.2 * rng.normal(size=(8, 10))
    y[:, 0] += 5.0
    data = gr.NodeData.from_dict({i: (X[i], y[i]) for i in range(8)})
    return gr.Problem(NAME(data) + 0.1 * gr.TotalVariation(gr.Graph.chain(8), gr.L2()))


if __name__ == "__main__":
    loss = NAME(gr.NodeData.from_dict({0: (np.ones((9, 1)), np.arange(9.0) - 4.0)}))
    print(gr.testing.check_loss(loss))
    print(example().solve())
    print(example().solve(gr.PrimalDual()))
'''

TEMPLATES = {"penalty": PENALTY, "loss": LOSS}


@main.command(short_help="Write a penalty or a loss of your own to begin with.")
@click.argument("kind", type=click.Choice(["penalty", "loss"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write a penalty or a loss of your own to begin with: one file with the class NAME, which obeys every law.

    Change its methods, and run the file: it checks them, and solves a small problem by two routes.
    """
    path = write(kind, name, Path.cwd())
    exits.say(f"written: {path.name}\nnow: python {path.name}, or graphreg check {kind} {path.stem}:{name}")


def write(kind: str, name: str, folder: Path) -> Path:
    """Write the template of a kind for a class of that name; a name or a file that is there already is refused."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name[0].isupper():
        raise ModelFileError(
            f"{name!r} is no name of a class: write it like SoftL1, letters and digits, a capital first"
        )
    path = folder / f"{_module(name)}.py"
    if hidden := _hidden(name, path):
        raise ModelFileError(f"{hidden}; choose another name, such as My{name}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATES[kind].replace("NAME", name))
    except FileExistsError:
        raise ModelFileError(f"{path} exists; choose another name, or remove it") from None
    except OSError as error:
        raise ModelFileError(f"{path} could not be written: {error.strerror or error}") from error
    return path


def _module(name: str) -> str:
    """The file of a class: soft_l1 of SoftL1."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _hidden(name: str, path: Path) -> str:
    """The sentence that names what a class of that name would hide: a class of graphreg, or a module that its file is
    called like; empty where it hides nothing."""
    if hasattr(gr, name):
        return f"{name} is there already, as graphreg.{name}, and would be meant wherever {name} is written"
    if not path.exists() and find_spec(path.stem) is not None:
        return f"{path.name} would hide the module {path.stem}, which is installed"
    return ""

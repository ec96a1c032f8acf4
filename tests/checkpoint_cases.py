"""The shared parts of the tests of checkpoints: methods that iterate, problems, a penalty of a user's, changed
files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import graphreg as gr
from graphreg.methods import METHODS, AbstractIteration
from graphreg.saving import archive

ITERATIVE = [method for method in METHODS if isinstance(method, AbstractIteration)]
FAST = (gr.PrimalDual, gr.ADMM)  # the others get so many rounds at most
SEEDS = (540, 431, 162, 383, 214, 355, 476, 97, 408, 129, 516, 299, 504)  # every loss, all penalties, latent nodes


@dataclass(frozen=True)
class Tilted(gr.Penalty):
    """A penalty of a user's: slope ||z||_1."""

    slope: float = 1.0

    def value(self, z):
        return self.slope * np.abs(z).sum(axis=1)

    def prox(self, v, step):
        t = self.slope * np.asarray(step, dtype=float).reshape(-1, 1)
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)

    def conjugate(self, u):
        return np.where(np.abs(u).max(axis=1) <= self.slope, 0.0, np.inf)

    def cvxpy(self, Z):
        raise NotImplementedError


def rewritten(path, **changes):
    """The file with other entries in its header, sums and all."""
    header, arrays = archive.read(path)
    archive.write(path, {**header, **changes}, arrays)

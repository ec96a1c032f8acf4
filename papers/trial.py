"""The inputs of a claim's function: random numbers, real data, replications, and the inputs that a test can perturb."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphreg.errors import ModelError

from .replications import Replications

VARIABLE = "GRAPHREG_DATA"  # the environment variable that names the folder of real data


@dataclass(frozen=True)
class Trial:
    """One computation of a claim.

    Attributes
    ----------
    seed : int
        It follows from the claim's id.
    files : dict of paths
        The files of real data that are there, by name.
    replications : Replications
    perturbation : float
        0, but where a test tampers with the inputs.
    """

    seed: int
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    replications: Replications = field(default_factory=Replications)
    perturbation: float = 0.0
    _inputs: list[int] = field(default_factory=list[int])

    def rng(self, *key: int) -> np.random.Generator:
        """A stream of random numbers for each key; the same in every run."""
        return np.random.default_rng([self.seed, *key])

    def given(self, value: Any) -> Any:
        """An input of one side of an equality: as it is, but perturbed where a test asks whether the verdict depends on
        it. The entries of an array are raised and lowered in turn.

        Raises
        ------
        ModelError
            For what is no number and no array of numbers.
        """
        array = np.asarray(value)
        if array.dtype.kind not in "iuf":
            raise ModelError(f"given: an input is a number or an array of numbers, got {type(value).__name__}")
        self._inputs.append(array.size)
        if not self.perturbation:
            return value
        turns = np.where(np.arange(array.size) % 2, -1.0, 1.0).reshape(array.shape)
        changed = array * (1.0 + self.perturbation * turns)
        return changed if array.ndim else float(changed)

    @property
    def perturbed(self) -> bool:
        """True where an input went through `given`."""
        return bool(self._inputs)

    def file(self, name: str) -> Path | None:
        """A file of real data that the claim declares; None where a stand-in takes its place."""
        return self.files.get(name)

    def replicate(
        self,
        unit: Callable[..., Mapping[str, Any]],
        cells: Sequence[Mapping[str, Any]],
        count: int,
        *,
        with_files: bool = False,
    ) -> list[list[dict[str, Any]]]:
        """``count`` replications of an experiment at each of some cells: ``unit(rng, **cell)`` returns numbers by name.

        With ``with_files`` it is called as ``unit(rng, files, **cell)``, where ``files`` are the paths of the real data
        by name.

        Each replication has random numbers of its own, is computed in one of the processes of the run, and is kept:
        what was computed before an interruption, or with another ``count``, is not computed again.

        Returns
        -------
        list of lists of dicts
            By cell, by replication.
        """
        tasks = [(dict(cell), number) for cell in cells for number in range(count)]
        flat = self.replications.carried_out(unit, tasks, self.seed, self.files if with_files else None)
        return [flat[k * count : (k + 1) * count] for k in range(len(cells))]


def folder_of_data(given: Path | None = None) -> Path:
    """The folder in which real data are looked for: the folder that is given, that of the environment variable
    GRAPHREG_DATA, or ``../shared/data`` beside the folder of the project."""
    named = os.environ.get(VARIABLE)
    return given or (Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data")

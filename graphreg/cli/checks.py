"""Losses and penalties to be checked, made from their names and options."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import graphreg as gr

from ..errors import DataError, ModelFileError
from ..model_file import Place, make

NODES, EACH = 5, 12  # nodes and samples per node of the data on which a loss is checked


def options(given: Sequence[str]) -> dict[str, Any]:
    """Options written as NAME=VALUE, the values as in a model file; what is no TOML is text."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ModelFileError(f"--option: {each!r} is not of the form NAME=VALUE")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


def penalty(name: str, given: dict[str, Any]) -> gr.Penalty:
    """The penalty of that name."""
    return make("penalty", name, given, Place("--option"), [Path.cwd()], at=Place(name))


def loss(name: str, given: dict[str, Any], seed: int) -> Any:
    """The loss of that name, on the first of several drawn data sets that it takes."""
    refused = ""
    for data in _data_sets(np.random.default_rng(seed)):
        try:
            return make("loss", name, dict(given), Place("--option"), [Path.cwd()], data, at=Place(name))
        except DataError as error:
            refused = str(error)
    raise DataError(f"{name} takes none of the data sets that are tried (numbers, counts, classes): {refused}")


def _data_sets(rng: np.random.Generator) -> list[gr.NodeData]:
    node = np.repeat([f"n{k}" for k in range(NODES)], EACH)
    X = rng.normal(size=(len(node), 2))
    classes = np.array(["a", "b", "c"], dtype=object)[np.arange(len(node)) % 3]
    targets: list[Any] = [
        classes,  # first: a loss of classes might take numbers for classes, too
        np.round(3.0 * rng.normal(size=len(node)), 2),
        rng.poisson(2.0, len(node)).astype(float),
        np.arange(len(node)) % 2,
    ]
    drawn = [gr.NodeData.from_arrays(X, y, node, intercept=True) for y in targets]
    return [*drawn, gr.NodeData.from_arrays(None, rng.normal(size=(len(node), 2)), node)]

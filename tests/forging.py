"""Checkpoints that somebody has changed: the places in their headers, other values there, and what becomes of a run."""

from __future__ import annotations

import copy
import os
from functools import cache

from factories import chain

import graphreg as gr
from graphreg.errors import CheckpointError
from graphreg.saving import archive

REFUSED = "refused"


def places(tree, at=()):
    """The ways to all parts of a header."""
    yield at
    if isinstance(tree, dict):
        for key in tree:
            yield from places(tree[key], (*at, key))
    elif isinstance(tree, list):
        for k, each in enumerate(tree):
            yield from places(each, (*at, k))


def looked_up(tree, at):
    for key in at:
        tree = tree[key]
    return tree


def put(tree, at, value):
    """The tree with another value at a place."""
    tree = copy.deepcopy(tree)
    if not at:
        return value
    looked_up(tree, at[:-1])[at[-1]] = value
    return tree


def of_run(*way):
    """The way to a field of the snapshot of a run, through the records that hold it."""
    at = ["values", 0, "tree"]
    for name in way:
        at += ["record", 1, name]
    return tuple(at)


def forged(path, at, value):
    """The file with another value at a place of its header."""
    header, arrays = archive.read(path)
    archive.write(path, put(header, at, value), arrays)


@cache
def _truth(problem):
    return problem().solve().certificate


def gone_on(path, problem=chain, method=None, **budget):
    """The answer of a run that goes on from a file; its certificate must be honest whatever the file says."""
    truth = _truth(problem)
    budget = {"gap": 1e-9, "rounds": 55, "on_failure": "return", **budget}
    try:
        run = problem().solve(method or gr.PrimalDual(polish=False), checkpoint=path, **budget)
    except CheckpointError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert str(path) in refused or os.path.realpath(path) in refused
        return REFUSED, refused
    found = run.certificate
    assert not found.valid or (found.dual <= truth.primal and truth.dual <= found.primal)
    assert (run.status == "certified") == found.holds(budget["gap"])
    return run.status, run

"""What the actor of a node is given: its part of the problem, and its place in the tree along which sums travel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields

import numpy as np

from ...form import Form
from ...network import Arcs
from ..parts import Part, part_of

COORDINATOR = -1  # where the sums of several components meet


@dataclass(frozen=True)
class SpanningTree:
    """The place of a node in the spanning forest along which sums travel."""

    parent: int  # a node, or the node itself at a root
    children: tuple[int, ...]
    beyond: bool  # a root whose sum goes on to the coordinator: there are several components
    first: bool  # the first root: the coordinator is with it


@dataclass(frozen=True)
class NodePart(Part):
    """The part of one node."""

    node: int
    label: Hashable
    tree: SpanningTree


def split(form: Form, arcs: Arcs) -> tuple[NodePart, ...]:
    """The parts of all nodes, the latent ones included."""
    return tuple(_part(form, arcs, i) for i in range(form.n))


def _part(form: Form, arcs: Arcs, i: int) -> NodePart:
    part = part_of(form, arcs, np.arange(form.n) == i)
    given = [getattr(part, field.name) for field in fields(part)]
    return NodePart(*given, node=i, label=form.labels[i], tree=_tree(arcs, i))


def _tree(arcs: Arcs, i: int) -> SpanningTree:
    parent = int(arcs.parent[i])
    children = tuple(np.flatnonzero(arcs.parent == i).tolist())
    first = i == int(np.flatnonzero(arcs.parent < 0)[0])
    return SpanningTree(i if parent < 0 else parent, children, parent < 0 and arcs.components > 1, first)

"""A broken copy of a term: what is broken, the term, the broken methods, the laws that must refuse it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """A broken copy of ``original``; ``laws`` are those that must fail."""

    name: str
    original: Any
    broken: Any
    laws: frozenset[str]
    tolerance: float = 1e-8


def mutant(name: str, original: Any, laws: str, tolerance: float = 1e-8, **methods: Callable[..., Any]) -> Mutant:
    """The original with some methods replaced; ``laws`` are separated by commas."""
    cls = type(type(original).__name__, (type(original),), methods)
    broken = object.__new__(cls)
    broken.__dict__.update(original.__dict__)
    return Mutant(name, original, broken, frozenset(laws.split(", ")), tolerance)

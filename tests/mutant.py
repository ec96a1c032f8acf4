"""A broken copy of a term: what is broken, the term, the broken methods, the laws that must refuse it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphreg.terms.losses import AbstractLoss, PriceDomain
from graphreg.terms.penalties.domain import FlowDomain
from graphreg.terms.penalties.penalty import AbstractPenalty


@dataclass(frozen=True)
class Mutant:
    """A broken copy of ``original``; ``laws`` are those that must fail."""

    name: str
    original: Any
    broken: Any
    laws: frozenset[str]
    tolerance: float = 1e-8


def mutant(name: str, original: Any, laws: str, tolerance: float = 1e-8, **methods: Callable[..., Any]) -> Mutant:
    """The original with some methods replaced, its own or those of its domain (which know the ``original`` domain);
    ``laws`` are separated by commas."""
    for kind, owner, domain in ((AbstractPenalty, "phi", "domain"), (AbstractLoss, "loss", "prices")):
        known = vars(FlowDomain) if owner == "phi" else vars(PriceDomain)
        changes = {key: each for key, each in methods.items() if key in known}
        if changes and isinstance(original, kind) and not isinstance(original, FlowDomain):
            methods = {key: methods[key] for key in methods.keys() - changes.keys()}
            methods[domain] = property(_changed_domain(getattr(original, domain), changes, owner))
    return Mutant(name, original, _changed(original, methods), frozenset(laws.split(", ")), tolerance)


def _changed_domain(domain: Any, changes: dict[str, Any], owner: str) -> Callable[[Any], Any]:
    return lambda term: _changed(domain, changes, original=domain, **{owner: term})


def _changed(term: Any, methods: dict[str, Any], **fields: Any) -> Any:
    """A copy of another class, with some methods and fields of its own."""
    out = object.__new__(type(type(term).__name__, (type(term),), methods))
    out.__dict__.update(term.__dict__, **fields)
    return out

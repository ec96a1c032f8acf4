"""The terms that vary with a strength: the norms between nodes that a Parameter scales, or the only such term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base.messages import did_you_mean
from ..errors import MethodError, TermError
from ..form import EdgeBlock, Form
from ..terms import Parameter, RowPenalty, Strength
from ..terms.losses import AbstractLoss, AbstractSmoothLoss
from ..terms.penalties import AbstractConstraint, AbstractPenalty, AbstractSmoothPenalty, has_kink, is_equality
from .arguments import form_of
from .network import Network


@dataclass(frozen=True, eq=False)
class Varying:
    """A form and what of it varies: the edge blocks ``places`` have the weights c_e = strength A_e.

    Attributes
    ----------
    form : Form
        At the strengths of the moment.
    places : tuple of int
        Edge blocks.
    units : tuple of float
        What the strength is multiplied by at each of them.
    name : str
        How the strength is spoken of.
    """

    form: Form
    places: tuple[int, ...]
    units: tuple[float, ...]
    name: str

    @property
    def network(self) -> Network:
        """The edges that vary, with A_e."""
        blocks = tuple(self.form.edges[k] for k in self.places)
        weights = tuple(unit * b.base_weight for unit, b in zip(self.units, blocks, strict=True))
        return Network(blocks, weights, self.form.shape)

    @property
    def plain(self) -> bool:
        """True where all that varies are differences of two nodes."""
        return all(self.form.edges[k].map.noun == "edge" for k in self.places)

    @property
    def agreeing_blocks(self) -> tuple[int, ...]:
        """The edge blocks of a consensus on coordinates that nothing which varies acts on. There the nodes agree at
        every strength: fused, they are a smaller problem of the same form."""
        if not self.plain:
            return ()
        varying = np.concatenate([np.zeros(0, dtype=np.intp), *self.network.columns])
        return tuple(
            k
            for k, e in enumerate(self.form.edges)
            if k not in self.places
            and e.map.noun == "edge"
            and is_equality(e.penalty, self.form.width(e))
            and not np.isin(e.columns(self.form.d), varying).any()
        )

    @property
    def consensus_network(self) -> Network:
        """The edges whose ends are equal at a consensus: those that vary, and those that are ``held``."""
        network, blocks = self.network, tuple(self.form.edges[k] for k in self.agreeing_blocks)
        ones = tuple(np.ones(len(b.tail)) for b in blocks)
        return Network((*network.blocks, *blocks), (*network.weights, *ones), network.shape)

    @property
    def rest(self) -> Form:
        """The form without what varies, and what is ``held``."""
        gone = {*self.places, *self.agreeing_blocks}
        return replace(self.form, edges=tuple(e for k, e in enumerate(self.form.edges) if k not in gone))

    def at(self, strength: float) -> Form:
        """The form at another strength."""
        edges = list(self.form.edges)
        for k, unit in zip(self.places, self.units, strict=True):
            edges[k] = replace(edges[k], strength=Strength(strength * unit))
        return replace(self.form, edges=tuple(edges))

    def under(self, penalty: AbstractPenalty) -> Form:
        """The form with another penalty, of weight 1, in the place of those that vary."""
        edges = list(self.form.edges)
        for k in self.places:
            ones = np.ones(edges[k].count)
            edges[k] = replace(edges[k], penalty=penalty, strength=Strength(), base_weight=ones)
        return replace(self.form, edges=tuple(edges))


def parameters_in(problem: Any) -> list[Parameter]:
    """The Parameters of a model, in the order of its terms; those whose terms have no edges do nothing."""
    blocks = (*problem.form.samples, *problem.form.edges)
    return list({id(p): p for block in blocks if (p := block.strength.parameter) is not None}.values())


def parameter_meant(given: Any, known: Sequence[Parameter], whose: str = "the model") -> Parameter:
    """The Parameter of a model that a user means: itself, or its name.

    Raises
    ------
    TermError
        For any other, and for a name that several have.
    """
    found = [p for p in known if p is given or (isinstance(given, str) and p.name == given)]
    if len(found) == 1:
        return found[0]
    if found:
        raise TermError(
            f"{len(found)} Parameters of {whose} are called {given!r}; give them distinct names, gr.Parameter(value, "
            "name=...), or give the Parameter itself"
        )
    has = f"{whose} has {', '.join(repr(p.name) for p in known) or 'none that scales anything'}"
    if isinstance(given, Parameter):
        raise TermError(f"the Parameter {given.name!r} scales no term of {whose}; {has}")
    if isinstance(given, str):
        raise TermError(f"{given!r} is no Parameter of {whose}; {has}{did_you_mean(given, [p.name for p in known])}")
    raise TermError(f"parameter must be a gr.Parameter of {whose} or its name, got {given!r}; {has}")


def varying(problem: Any, parameter: Parameter | str | None, what: str, rows: bool = False) -> Varying:
    """The part of a problem that varies with a Parameter; without one, with the only Parameter among the norms between
    nodes, or else with the strength of the only such term. With ``rows`` norms of any rows may vary, those of single
    nodes where a Parameter says so, or there are no others.

    Raises
    ------
    TermError
        Where the choice is not clear, or what is chosen is no norm between nodes; it names the terms.
    """
    form = form_of(problem, what)
    for edge in form.unlike_edges if not rows else ():
        raise TermError(
            f"{what} is known of norms on the edges of a graph so far, and {edge.name} has rows of another kind; "
            "choose the strengths yourself"
        )
    every = [k for k, e in enumerate(form.edges) if holds_all_together(e.penalty, form.width(e))]
    norms = [k for k in every if form.edges[k].map.noun != "node"]
    norms = every if rows and (parameter is not None or not norms) else norms
    if parameter is None:
        parameters = {id(p): p for k in norms if (p := form.edges[k].strength.parameter) is not None}
        if len(parameters) > 1:
            names = ", ".join(repr(p.name) for p in parameters.values())
            raise TermError(f"{what} varies one Parameter, and the norms have {names}; say which: parameter=...")
        parameter = next(iter(parameters.values()), None)
    else:
        parameter = parameter_meant(parameter, parameters_in(problem))
    return _of_term(problem, norms, what) if parameter is None else _of_parameter(form, norms, parameter, what)


def holds_all_together(penalty: AbstractPenalty, k: int) -> bool:
    """True where there is a strength from which on the penalty holds all together: it has a kink at 0 in every
    direction (or is homogeneous: then `check_smooth` says along which it is 0), and is no constraint."""
    kinked = not isinstance(penalty, (AbstractConstraint, AbstractSmoothPenalty))
    return kinked and (has_kink(penalty, k) or homogeneous(penalty, k))


def is_norm(penalty: AbstractPenalty, k: int) -> bool:
    """True of a norm on k coordinates: homogeneous, with a kink at 0 in every direction. Its dual norm is
    ``gauge_at_zero``."""
    return holds_all_together(penalty, k) and homogeneous(penalty, k) and has_kink(penalty, k)


def homogeneous(penalty: AbstractPenalty, k: int) -> bool:
    """True where phi(t z) = t phi(z), as was tried."""
    z = np.random.default_rng(0).normal(size=(4, k))
    value = penalty.value(z)
    return all(np.allclose(penalty.value(t * z), t * value, rtol=1e-8, atol=0.0) for t in (1e-3, 0.5, 1e3))


def _of_parameter(form: Form, norms: list[int], parameter: Parameter, what: str) -> Varying:
    mine = [k for k, e in enumerate(form.edges) if e.strength.parameter is parameter]
    losses = [b.loss.called() for b in form.samples if b.strength.parameter is parameter]
    if wrong := [*losses, *(form.edges[k].name for k in mine if k not in norms)]:
        raise TermError(
            f"{what} is for norms between nodes, and the parameter {parameter.name!r} scales {wrong[0]}"
            f"{_without(form, [k for k in mine if k not in norms])}; give that term a strength of its own"
        )
    units = tuple(form.edges[k].strength.factor for k in mine)
    return Varying(form.frozen(), tuple(mine), units, f"the parameter {parameter.name!r}")


def _of_term(problem: Any, norms: list[int], what: str) -> Varying:
    form: Form = problem.form
    terms = [(s, t, mine) for s, t, places in _terms(problem) if (mine := [k for k in places if k in norms])]
    if not terms:
        raise TermError(f"{what} needs a norm between nodes, and there is none{_without(form)}")
    if len(terms) > 1:
        names = ", ".join(form.edges[mine[0]].name for _, _, mine in terms)
        raise TermError(
            f"{what} varies one strength, and there are {len(terms)} norms between nodes: {names}; scale those that "
            "are to vary by one Parameter, lam = gr.Parameter(1.0), and leave the others out or make them smooth"
        )
    strength, term, mine = terms[0]
    units = tuple(float(form.edges[k].strength) / float(strength) for k in mine)
    of_rows = isinstance(term, RowPenalty) or form.edges[mine[0]].map.edges is None
    name = form.edges[mine[0]].name if of_rows else type(term).__name__
    return Varying(form.frozen(), tuple(mine), units, f"the strength of {name}")


def _terms(problem: Any) -> list[tuple[Strength, Any, list[int]]]:
    """The terms of a problem but its losses, each with the numbers of its edge blocks."""
    out: list[tuple[Strength, Any, list[int]]] = []
    count = 0
    for strength, term in problem.model.terms:
        if isinstance(term, AbstractLoss):
            continue
        size = sum(e.count > 0 for e in term.lower(problem.form.space, strength).edges)
        out.append((strength, term, list(range(count, count + size))))
        count += size
    return out


def _without(form: Form, places: list[int] | None = None) -> str:
    """The reason for which edges between nodes have no such strength, as the end of a sentence."""
    edges = [e for k, e in enumerate(form.edges) if e.map.noun != "node" and (places is None or k in places)]
    if not edges:
        return " (no edges between nodes at all)" if places is None else ""
    edge = edges[0]
    name = edge.penalty.called()
    if isinstance(edge.penalty, AbstractConstraint):
        return f" ({edge.name} is a constraint, the same at every strength)"
    return f" ({name} has no strength at which all nodes agree: differences shrink, and none vanishes)"


def check_smooth(vary: Varying, what: str) -> None:
    """Raise `MethodError` where what does not vary has no gradients, or a norm that varies is 0 along a direction."""
    form, gone = vary.form, {*vary.places, *vary.agreeing_blocks}
    wrong = [f"{name} has no gradient where it has kinks" for name in form.losses_beside(AbstractSmoothLoss)]
    wrong += [f"{e.name} {_rough(e)}" for k, e in enumerate(form.edges) if k not in gone and _rough(e)]
    if wrong:
        raise MethodError(
            f"{what} needs gradients of all that does not vary: {'; '.join(wrong)}; leave it out, or take a smooth one "
            "(HuberLoss for QuantileLoss, SquaredHingeLoss for HingeLoss, SquaredL2 or HuberNorm for a norm)",
            tuple(wrong),
        )
    for edge in (form.edges[k] for k in vary.places):
        if not has_kink(edge.penalty, form.width(edge)):
            raise MethodError(f"{edge.name} is 0 along some direction, so that it is no norm and asks for no consensus")


def _rough(edge: EdgeBlock) -> str:
    if isinstance(edge.penalty, AbstractSmoothPenalty):
        return ""
    if isinstance(edge.penalty, AbstractConstraint):
        only = ", which may only be an equality on coordinates that the norm does not act on"
        between = only if edge.map.noun == "edge" else ""
        return f"is a constraint ({edge.penalty.called()}){between}"
    return f"has kinks ({edge.penalty.called()})"

"""The primal-dual method of GTV minimisation (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from ...base.messages import unmatched
from ...checks import checked, inside, per, positive
from ...errors import MethodError
from ...form import Form
from ...network import (
    SOME,
    SPEED,
    AbstractFlatPoint,
    AbstractRounds,
    LocalView,
    Memories,
    code_of,
    compiled_from,
    per_node,
)
from ...oracles import INEXACT, Accuracy, Inexact, gradient_steps, without_prox, without_steps
from ...running import Start
from ...terms import Array
from ._halpern import Flows, Halpern, Iterate
from ._lossy import LossyEdges
from .fixed_point import Acceleration, State


@dataclass(frozen=True)
class PrimalDual(LossyEdges):
    """Primal-dual method (Chambolle-Pock) with diagonal steps.

        w+ = prox of tau f at  w - tau K'u
        u+ = prox of sigma g* at  u + sigma (K(2 w+ - w) - center)
        (w, u) <- (w, u) + relaxation ((w+, u+) - (w, u))

    with tau_i = s / deg_i and sigma_e = 1/(2 s) (1/s on edges to the ground): Algorithm 1 of GTV minimisation,
    equations (32) and (33), is ``PrimalDual(balance=1, relaxation=1)``.

    Parameters
    ----------
    balance : float, optional
        s, in units of 1 / curvature. None (default) starts at mean degree over mean curvature and adapts: at rounds
        10, 20, 40, ... s moves towards the ratio of the distances that w and u travelled since the last change.
    relaxation : float
        In (0, 2); 1.8 by default.
    restarts : bool, optional
        Whether points are pulled towards an anchor that moves up at restarts (Halpern's iteration), where the balance
        then adapts. None (default): where a loss has kinks and no balance is given.
    tau : float or mapping, optional
        tau_i, one for all nodes or one per label; s / deg_i by default, at latent nodes beside a mapping, and at nodes
        without edges, which take a long step.
    sigma : float, optional
        sigma_e on all edges, those to the ground included; 1/(2 s) and 1/s by default. Where tau or sigma is given,
        nothing adapts, and s is 1 or the given balance: ``PrimalDual(sigma=0.45, relaxation=1)`` has the steps 1/deg_i
        and 0.45. The method converges where ``||diag(sigma)^(1/2) K diag(tau)^(1/2)||^2 <= 1`` (Condat 2013, theorem
        3.3; with one tau and one sigma that is tau sigma ||K||^2), with relaxation 1 where it is below 4/3 (Banert,
        Upadhyaya and Giselsson 2023, The Chambolle-Pock method converges weakly with theta > 1/2 and tau sigma
        ||L||^2 < 4/(1 + 2 theta)). Longer steps are taken as they are, with a `MethodWarning` and a word in the
        solution's message: nothing guarantees that they lead anywhere, and the certificate says how far they came.
    polish : bool
        Now and then guess from the flows which differences vanish, merge those nodes, and solve the small problem that
        is left by Newton's method; taken only where the certificate confirms it. Where a point is looked at or
        certified, what the flows say is fused is set to its mean, if that is better. Central steps, recorded in the
        ledger as sums over all nodes. Never with a given balance, tau or sigma, which are for following the paper's
        iteration, and never with inexact updates.
    inexact : int, float or callable, optional
        None (default): nodes solve for their prox, of smooth losses but squares to a hundredth of the move from the
        last round's, and of others exactly, as ``problem.oracles().prox`` does of all. Else they take gradient steps: a
        whole number of them in each round, from the point of the last; or as many as bring a node within a tolerance of
        its prox, in the units of the parameters: a number c stands for the tolerance c / (t + 1)^2 in round t = 0, 1,
        ..., a function of t gives any other (``lambda t: 0.0``: exact proxes). The method converges where the
        tolerances are summable over the rounds (Condat, J. Optim. Theory Appl. 158, 2013, theorem 3.1; of the paper the
        remark on inexact updates); where they are not, it may stop short of the optimum. The certificate holds in any
        case. For smooth losses.

    Examples
    --------
    >>> run = problem.solve(gr.PrimalDual(), gap=1e-8)
    >>> run.status, run.certificate.relative_gap <= 1e-8
    ('certified', True)
    """

    needs = "losses that are smooth or piecewise linear; any penalty, any graph"
    sends = "the extrapolated parameters, both ways across every edge: the coordinates that it couples"
    rows = True

    balance: float | None = checked(positive, None)
    relaxation: float = checked(inside("(0, 2)"), 1.8)
    restarts: bool | None = None
    polish: bool = True
    inexact: Inexact | None = checked(INEXACT, None)
    tau: float | Mapping[Hashable, float] | None = checked(per("node", positive), None)
    sigma: float | None = checked(positive, None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.balance is not None and None not in (self.tau, self.sigma):
            raise MethodError("PrimalDual takes a balance, or tau and sigma: with both of them it plays no part")
        if self.manual and self.restarts:
            raise MethodError(
                "PrimalDual(restarts=True) measures its way in the norm of the balance, and tau or sigma are given: "
                "leave restarts to be chosen, or give balance= instead"
            )

    @property
    def manual(self) -> bool:
        """True where tau or sigma is given."""
        return self.tau is not None or self.sigma is not None

    @cached_property
    def step_sizes(self) -> StepSizes:
        return StepSizes(self.tau, self.sigma)

    def missing(self, form: Form) -> tuple[str, ...]:
        lacks = without_prox(form) if self.inexact is None else without_steps(form)
        return lacks if self.tau is None else (*lacks, *unmatched("tau", self.tau, form.space.index))

    def unproven(self, form: Form) -> tuple[str, ...]:
        if not self.manual:
            return ()
        product, plain = self.step_sizes.product(form, self.balance or 1.0), self.relaxation == 1.0
        if product <= 1.0 + ROUNDING or (plain and product < 4.0 / 3.0 - ROUNDING):
            return ()
        bound = "below 4/3" if plain else "up to 1 (with relaxation=1 below 4/3)"
        return (
            f"tau sigma ||K||^2 is {product:.6g} here, and convergence is proven {bound}: divide tau or sigma by "
            f"{product:.3g}",
        )

    def polishes(self) -> bool:
        return self.polish and self.balance is None and self.inexact is None and not self.manual

    @cached_property
    def acceleration(self) -> Acceleration:
        return Acceleration(self.relaxation, self.restarts, 1.0 if self.manual and not self.balance else self.balance)

    def init(self, view: LocalView, start: Start | None) -> State:
        state = super().init(view, start)  # parts of a graph, which may have others at hand, do as if they had all
        return state if view.whole_graph is not None else replace(state, price=code_of(view.form).price)

    def step(self, state: State) -> State:
        """The next state, by a compiled round where that pays, and where no anchor pulls."""
        rounds, view = self._compiled(state), state.view
        if rounds is not None:
            return self._fused(rounds, state, 1)
        if state.price > 0.0 and state.round >= compiled_from(view.entries, 0.0, state.earlier):
            code_of(view.form).price -= view.entries / SPEED
        return super().step(state)

    def steps(self, state: State, count: int) -> tuple[State, int]:
        """Compiled rounds up to where the balance adapts."""
        rounds = self._compiled(state) if type(self).step is PrimalDual.step else None
        if rounds is None:
            return self.step(state), 1
        if isinstance(state.due, int):
            count = min(count, max(state.due - state.round, 1))
        count = min(count, rounds.at_once)
        return self._fused(rounds, state, count), count

    def _compiled(self, state: State) -> AbstractRounds | None:
        ours = type(self).image is PrimalDual.image and type(self).nodes is PrimalDual.nodes
        if not ours or self.inexact is not None or self.manual or isinstance(state.due, Halpern):
            return None
        view = state.view
        if state.round < compiled_from(view.entries, state.price, state.earlier):
            return None
        code_of(view.form).buy()
        rounds = view.rounds
        return rounds if rounds is None or state.round < SOME else view.near_rounds

    def _fused(self, rounds: AbstractRounds, state: State, count: int) -> State:
        return self.adapted(fused(rounds, state, self.acceleration.relaxation, count))

    def lighten(self, state: State) -> None:
        for name in ("rounds", "near_rounds"):
            known = vars(state.view).get(name)
            if known is not None:
                known.trim()

    def image(self, state: State) -> tuple[Array, Flows, Memories]:
        """A round of Algorithm 1: (w+, u+)."""
        view, x = state.view, state.x
        w, memory = self.nodes(state)  # (32)
        u = view.dual_prox(x.u, view.engine.exchange(2.0 * w - x.w), state.s, self.sigma)  # (33)
        return w, u, memory

    def nodes(self, state: State) -> tuple[Array, Memories]:
        """(32): the prox of tau f at w - tau K'u, exact or not."""
        view, x, last = state.view, state.x, state.hat.w
        tau = self.step_sizes.at_nodes(view.form, view.degree, view.steps(state.s))
        v = x.w - tau[:, None] * view.adjoint(x.u)
        if self.inexact is None:
            return view.prox(v, tau, last, state.memory)
        accuracy = Accuracy.of(self.inexact, state.round, self.name)
        return gradient_steps(view.losses, v, tau, last, state.memory, accuracy)

    def for_lost_messages(self) -> PrimalDual:
        """Without restarts, which no theory covers there. (A balance that adapts does so ever more rarely.)"""
        if self.restarts:
            raise MethodError(
                "PrimalDual(restarts=True) is not proven where messages may be lost; leave restarts to be chosen"
            )
        if self.manual:
            raise MethodError(
                "PrimalDual is proven where messages may be lost with tau_i = s/deg_i and sigma_e = 1/(2 s) alone: "
                "give balance= instead of tau and sigma"
            )
        return replace(self, restarts=False)


# ---- compiled rounds -------------------------------------------------------------------------------------------------
def fused(rounds: AbstractRounds, state: State, relaxation: float, count: int = 1) -> State:
    """The state after as many rounds as `PrimalDual.image` describes, relaxed; with the same messages."""
    state.hat.forget()
    view, x = state.view, state.x.known
    if not isinstance(x, AbstractFlatPoint) or x.rounds is not rounds:
        x = rounds.iterate_of(state.x.w, state.x.u)
    warm = state.hat.w if rounds.begins else None
    new, image, memory = rounds.rounds(x, warm, state.s, relaxation, state.memory or view.memory(), count)
    if rounds.rest is None:
        for _ in range(count):
            view.engine.exchange(new.w)  # which records the messages, whatever they hold
    return replace(state, round=state.round + count, x=Iterate.of(new), hat=Iterate.of(image), memory=memory)


# ---- step sizes that are given ---------------------------------------------------------------------------------------
DENSE = 200  # numbers up to which all eigenvalues are computed
ROUNDING = 1e-9  # of a product: on bipartite graphs the steps of the paper have exactly 1


@dataclass(frozen=True)
class StepSizes:
    """tau_i at the nodes and sigma_e on the edges; None where they follow from the balance."""

    tau: float | Mapping[Hashable, float] | None
    sigma: float | None

    def at_nodes(self, form: Form, degree: Array, default: Array) -> Array:
        """tau_i, (n,): the default where none is given, and at nodes without edges, which need no short step."""
        if self.tau is None:
            return default
        given = per_node(form, self.tau, np.nan if isinstance(self.tau, Mapping) else self.tau)
        return np.where((degree > 0) & np.isfinite(given), given, default)  # a mapping says nothing of latent nodes

    def product(self, form: Form, s: float) -> float:
        """``|| diag(sigma)^(1/2) K diag(tau)^(1/2) ||^2``."""
        degree, blocks = form.degree(), (*form.edges, *form.beside)
        root = np.sqrt(self.at_nodes(form, degree, s / np.maximum(degree, 1.0)))
        steps = [np.full(b.count, 1.0 / b.lengths / s if self.sigma is None else self.sigma) for b in blocks]
        if not blocks:
            return 0.0
        most, long = max(float(each.max()) for each in steps), float(root.max())
        root = np.repeat(root / long, form.d)  # steps are divided first: their product may overflow
        rows = [np.repeat(np.sqrt(each / most), b.map.width(form.d)) for b, each in zip(blocks, steps, strict=True)]
        K = sp.vstack([sp.diags_array(c) @ b.map.flat(form.d) for b, c in zip(blocks, rows, strict=True)])
        K = sp.csr_array(K @ sp.diags_array(root))
        if len(root) <= DENSE:
            largest = np.linalg.eigvalsh((K.T @ K).toarray())[-1]
        else:
            begin = np.random.default_rng(0).standard_normal(len(root))
            largest = eigsh(K.T @ K, k=1, which="LA", v0=begin, return_eigenvectors=False)[0]
        return float(largest) * long * long * most

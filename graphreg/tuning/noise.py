"""The strength that the noise asks for: the smallest at which, on the true graph, noise alone splits nothing.

    strength  =  quantile of  max_e ||((A D)^+' Psi)_e||_*,    Psi_i ~ N(0, S_i) independently

with A D the weighted differences of the edges that vary and S_i the covariance of the score of node i (graph-fused
M-estimation, Theorem 3.1 with the strength R*{(D^+)' Psi}, in the scaling of the problem: the scores hold the scales
s_r of the losses). (A D)^+' Psi are the electrical flows that carry Psi, over their capacities at strength 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import checks
from ..base.clock import afresh, check_deadline, cut_short, needed, progress_bar, within
from ..base.lazy import stats
from ..base.tables import NumberWithAssumptions
from ..inference import LocalFits, local_fits
from ..terms import Array, Parameter
from ..theory import Network, Varying, square_roots, varying

NAME = "noise_strength"
LEAST = 20  # draws


@dataclass(frozen=True, eq=False)
class NoiseStrength(NumberWithAssumptions):
    """The strength that the noise asks for; ``float(...)`` is its ``value``.

    Attributes
    ----------
    value : float
        In the units in which the strength is written in the model.
    low, high : float
        A 95% interval for it, by which the number of draws is judged; it speaks of no other error.
    quantile : float
    draws : (draws,) array
        What was drawn, in increasing order.
    assumed : tuple of str
    """

    low: float
    high: float
    quantile: float
    draws: Array = field(repr=False)

    def _lines(self) -> list[str]:
        return [
            f"{NAME} {self.value:.6g} ({self.low:.6g} to {self.high:.6g}, for {len(self.draws)} draws): the "
            f"{self.quantile:g} quantile of the largest load that noise puts on an edge"
        ]

    def __repr__(self) -> str:
        return f"<NoiseStrength {self.value:.6g}>"


def noise_strength(
    problem: Any,
    quantile: float = 0.9,
    draws: int = 1000,
    seed: int | None = None,
    *,
    covariance: str = "HC3",
    parameter: Parameter | str | None = None,
    seconds: float | None = None,
    progress: bool | None = None,
) -> NoiseStrength:
    """The strength of a norm between nodes at which noise alone seldom splits nodes that are alike.

    Parameters
    ----------
    problem : Problem
        Smooth losses whose local fits exist at every node with data, and norms along edges.
    quantile : float
        In (0, 1): how often the noise is to stay below.
    draws : int
        At least 20.
    seed : int, optional
    covariance : {"HC3", "HC4", "HC2", "HC1", "HC0", "model"}
        Of the scores; see `LocalFits.score_covariance`.
    parameter : Parameter or its name, optional
        The strength that is meant, as for `strength_max`.
    seconds : float, optional
        A budget of time.
    progress : bool, optional
        Whether to show a progress bar; by default where stderr is a terminal.

    Returns
    -------
    NoiseStrength
        After Ctrl-C, and where the time is up, of the draws so far, and the word that it was cut short. Before 20 of
        them are done there is nothing yet to give: then Ctrl-C raises KeyboardInterrupt.

    Raises
    ------
    TermError
        As for `strength_max`.
    MethodError, DataError
        Where local fits do not exist: losses with kinks, too few samples, separable classes.
    BudgetError
        Where the time is up before 20 draws are done.

    Examples
    --------
    >>> found = gr.tuning.noise_strength(problem, draws=100, seed=0)
    >>> found.value > 0
    True
    """
    (checks.seconds | None)(seconds, "seconds")
    checks.fraction(quantile, "quantile")
    checks.whole(LEAST)(draws, "draws")
    (checks.seed | None)(seed, "seed")
    values: list[float] = []
    with within(seconds):
        with needed(NAME):
            vary = varying(problem, parameter, NAME)
            fits = local_fits(vary.form)
            roots = np.zeros((vary.form.n, vary.form.d, vary.form.d))  # latent nodes have no noise
            roots[: fits.form.n] = square_roots(fits.score_covariance(covariance))
            worth = fits.worth
        ended = _draw(values, vary.network, roots, draws, seed, progress)
    with afresh(None):
        return _record(vary, fits, np.sort(values), draws, quantile, (covariance, worth, ended))


def _record(
    vary: Varying, fits: LocalFits, values: Array, asked: int, quantile: float, said: tuple[str, str, str]
) -> NoiseStrength:
    draws, (covariance, worth, ended) = len(values), said
    low, high = stats.binom.ppf([0.025, 0.975], draws, quantile).astype(int)
    ends = float(values[max(low - 1, 0)]), float(values[min(high, draws - 1)])
    empty = int((~fits.fitted).sum())
    assumed = (
        "the graph is nearly right (after edge selection, say): nodes that an edge joins are alike. On a raw graph "
        "with false edges this is several times too large (4 to 9 times where measured): cross-validate, or take a "
        "fifth",
        *([f"CUT SHORT ({ended}) after {draws} of {asked} draws"] if ended else []),
        f"scores are independent and nearly normal, with the {covariance} covariance of each node's own fit",
        f"{vary.name} alone is chosen; other terms of the model play no part but smooth node penalties, in the fits",
        *([f"nodes without data have no noise; there {'is' if empty == 1 else 'are'} {empty}"] if empty else []),
        worth + "; the quantile of the draws itself has no certificate",
    )
    return NoiseStrength(float(np.quantile(values, quantile)), *ends, quantile, values, assumed=assumed)


def _draw(
    values: list[float], network: Network, roots: Array, draws: int, seed: int | None, progress: bool | None
) -> str:
    """Appends max_e ||((A D)^+' Psi)_e||_* for each draw of Psi; what cut it short, where enough is there."""
    rng = np.random.default_rng(seed)
    bar = progress_bar(progress, total=draws, desc=NAME, unit=" draws", delay=1.0)
    with cut_short(NAME, lambda: len(values) >= LEAST) as ended, bar as tick:
        for _ in range(draws):
            check_deadline()
            values.append(network.strain(np.einsum("ijk,ik->ij", roots, rng.normal(size=network.shape))))
            tick(1)
    return "".join(ended)

"""What edge tests say and what they rest on, in sentences."""

from __future__ import annotations

from dataclasses import dataclass

from ...terms import Array
from ..local import LocalFits
from ..wald import Reference

RESTS = {
    "chow": "one noise variance at both nodes and at all their samples; exact where the noise is normal, a test for "
    "many samples where not",
    "robust": "the noise may vary from sample to sample; the degrees of freedom are estimated as if it did not",
    "HC0": "many samples per coefficient: chi-square rejects far too often where there are few",
    "HC1": "many samples per coefficient: chi-square rejects far too often where there are few",
    "HC2": "many samples per coefficient: chi-square rejects too often where there are few",
    "HC3": "many samples per coefficient: chi-square's tails are too light for very small p-values where there are few",
    "HC4": "many samples per coefficient: chi-square rejects too often where there are few",
    "model": "the loss is minus the log-likelihood of the data (a squared loss: noise of variance 1); wrong, not only "
    "rough, where it is not",
}
CORRECTED = {
    "bonferroni": "Bonferroni's correction: with chance {alpha:g} at most is any edge between equal nodes removed",
    "bh": "the correction of Benjamini and Hochberg: of the removed edges {alpha:g} at most are expected to join equal "
    "nodes (for tests that are independent or positively dependent)",
    "none": "no correction: each edge between equal nodes is removed with chance {alpha:g}",
}


NAMES = {
    "bonferroni": "after Bonferroni's correction",
    "bh": "after the correction of Benjamini and Hochberg",
    "none": "without a correction for many tests",
}


@dataclass(frozen=True)
class TestOptions:
    """The correction, the level, and whether the graph was given."""

    correction: str
    alpha: float
    given: bool


def verdict(differ: int, tested: int, asked: TestOptions) -> str:
    """What the tests say, in plain words."""
    level = f"at the level {100 * asked.alpha:g}% {NAMES[asked.correction]}"
    if not differ and tested == 1:
        return f"At the one tested edge the two nodes do not differ, {level}. That does not prove them equal."
    if not differ:
        return f"At none of the {tested} tested edges do the two nodes differ, {level}. That does not prove them equal."
    head = f"At {differ} of the {tested} tested edges the two nodes differ, {level}."
    rest = tested - differ
    other = "other one" if rest == 1 else f"other {rest}"
    return head if not rest else f"{head} The samples do not tell the ends of the {other} apart."


def assumed(fits: LocalFits, used: Array, reference: Reference, untested: int, asked: TestOptions) -> tuple[str, ...]:
    """The sentences under the table: ``used`` names the covariance of every edge that was tested."""
    out = ["the samples are independent, within a node and between nodes, and each node's own estimate is near normal"]
    out.append(fits.worth)
    for kind in dict.fromkeys(used.tolist()):
        many = int((used == kind).sum())
        out.append(f"{kind} ({many} edge{'s' if many > 1 else ''}): {RESTS[kind]}")
    if fits.form.edges:
        out.append(
            "the local estimates are biased by the node penalty: what is tested is that of the penalised parameters, "
            "which differ between nodes with equal parameters and different designs"
        )
    void = int((reference.residual_df <= 0).sum())
    if void:
        out.append(
            f"{void} edge{'s have' if void > 1 else ' has'} too few samples for the robust test: p-value 1, kept"
        )
    if untested:
        out.append(f"{untested} edge{'s lead' if untested > 1 else ' leads'} to nodes without data: not tested, kept")
    if not asked.given:
        out.append("no graph was given: all pairs of nodes with data are tested")
    out.append(CORRECTED[asked.correction].format(alpha=asked.alpha))
    out.append("a kept edge is one whose ends were not told apart, which does not prove them equal")
    return tuple(out)

"""The edges of an answer and what may be said of them: near, fused, split, or undecided.

- *near*: at every optimum the ends are at most so far apart. The slack of the flow and the gap prove it, for every
  penalty with a kink at 0 (see `certificate.near`), or strong convexity does; it costs nothing beyond the certificate.
- *fused*: at every optimum the ends are equal, exactly. By definition (a consensus), by a gap of exactly 0, or, where a
  proof is asked for, by `certificate.fusion`.
- *split*: at no optimum are the ends equal. By strong convexity, of the nodes or, with a proof, of clusters that were
  proved; or by a dual point of the problem in which they are tied, whose value exceeds P (see `splitting`).
- *undecided* otherwise; and so the number of clusters is known up to a range.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.clock import alarm, cut_short
from ...base.display import Html, Shown, details, more, sentence, table, title
from ...base.messages import count as plural
from ...errors import TermError
from ...form import EdgeBlock, Form
from ...form.notation import listed
from ...inputs import components_of
from ...terms import Array
from ...terms.penalties import has_kink, is_equality, row_norm
from ..convexity import node_convexity
from ..record import OWN_TERMS, Certificate
from .cluster_radius import cluster_radius
from .fusion import fused, separate
from .holding import held
from .near import nearness, radius, scales, spread_of, upper_gap

if TYPE_CHECKING:
    import pandas as pd


# ---- nodes that chosen edges join, over all terms and coordinates ----------------------------------------------------
def joined(form: Form, claims: list[_Claim], chosen: Callable[[_Claim], Array], observed: bool = True) -> Array:
    """The component of each node in the graph of the pairs that chosen edges join: on all coordinates, by all terms
    together, and none of the terms of the pair being split. What an equality shares holds for all that it connects."""
    covered: dict[int, set[int]] = {}
    whole, apart = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for claim in claims:
        edge = claim.edge
        pairs = edge.tail.astype(np.int64) * form.n + edge.head
        apart.append(pairs[claim.state == "split"])
        mask = chosen(claim)
        if edge.features is None:
            whole.append(pairs[mask])
        else:  # on some coordinates: a cluster only where the terms together cover all of them
            for pair in pairs[mask].tolist():
                covered.setdefault(pair, set()).update(map(int, edge.features))
    for edge in (claim.edge for claim in claims):
        if edge.features is not None and is_equality(edge.penalty, len(edge.features)):
            part = components_of(edge.tail, edge.head, form.n)[1]
            for pair in (pair for pair in covered if part[pair // form.n] == part[pair % form.n]):
                covered[pair].update(map(int, edge.features))
    whole.append(np.array([pair for pair, columns in covered.items() if len(columns) == form.d], dtype=np.int64))
    pairs = np.concatenate(whole)
    links = np.stack(np.divmod(pairs[~np.isin(pairs, np.concatenate(apart))], form.n), axis=1)
    number = components_of(links[:, 0], links[:, 1], form.n)[1]
    return number[: form.space.n_observed] if observed else number


# ---- clusters --------------------------------------------------------------------------------------------------------
NEGLIGIBLE = 1e-3  # of the scale of each coordinate: edges whose ends are provably closer are near
LEAST = 1e-12  # relative gap that doubles can tell
STATES = ("fused", "near", "split", "undecided")
SHOWN = 10  # clusters in a notebook
COLUMNS = ("term", "tail", "head", "state", "slack", "difference", "bound", "certain", "split_in")
Splitter = Callable[[Certificate, list[Array], Array], Iterator[tuple[int, list[int]]]]  # block and rows of split edges


@dataclass(frozen=True, repr=False)
class Clusters(Shown):
    """The clusters of an answer.

    Attributes
    ----------
    edges : DataFrame
        One row per edge between nodes (latent ones included) and per term: term, tail, head, state ("fused", "near",
        "split" or "undecided"), slack (capacity left by the flow, at the least; 0 where it is used up or the penalty
        has no kink at 0), difference (||w_tail - w_head|| in this answer, on the term's coordinates; of standardised
        features w is per standard deviation), bound (what that is at most, at every optimum; inf where nothing is
        proved), certain (fused or split: proved, with nothing left
        open; of a near edge its bound is proved, and not whether the ends are equal), split_in (where a penalty acts on
        each coordinate by itself, as L1 does, and there are several: the coordinates in which the ends are proved to
        differ at every optimum; in the others they may be equal. Else empty).
    labels : dict
        A cluster number per node label: the components of the graph of near and fused edges, and of undecided ones
        whose ends are the same in this answer, bit for bit. Near and fused rest on proofs, up to the bounds of the near
        edges, which are negligible beside the scale of every coordinate.
    certain : bool
        Whether every edge is proved to be fused or split.
    count_range : (int, int)
        Between how many clusters every optimum has, nodes with equal parameters along edges being one: the least if all
        near and undecided edges are fused, the most if none is.
    ended : str
        The word for what cut the search for proofs short, "interrupted" or "out of time": what had been found holds.
        Empty where nothing did.
    split_in : dict
        On how many edges each coordinate is split, by name, from the column of that name; empty where every split edge
        is split in all of them, or none is named.
    note : str
        What all proofs rest on beside arithmetic: empty, or the terms that the user wrote; and the terms whose rows
        are no edges, which are left out.
    advice : str
        What may decide the edges that are undecided; empty where none is.
    unit : str
        The unit of ``difference`` and ``bound``, in words; empty where it is that of tables.
    decided_at : float
        The relative gap, to be given as ``gap=`` of a solve, at which the undecided edges would be near or split, were
        the flows and differences those of this answer: an estimate. 0 where it is below what doubles can tell, or
        nothing is undecided.
    """

    edges: pd.DataFrame
    labels: dict[Hashable, int]
    certain: bool
    count_range: tuple[int, int]
    ended: str = ""
    split_in: dict[str, int] = field(default_factory=dict[str, int])
    note: str = ""
    advice: str = ""
    unit: str = ""
    decided_at: float = 0.0

    @property
    def count(self) -> int:
        """The number of clusters of ``labels``; what is proved of it is ``count_range``."""
        return len(set(self.labels.values()))

    def members(self) -> list[list[Hashable]]:
        """The node labels of each cluster, the largest first."""
        groups: dict[int, list[Hashable]] = {}
        for label, number in self.labels.items():
            groups.setdefault(number, []).append(label)
        return sorted(groups.values(), key=len, reverse=True)

    @property
    def counts(self) -> dict[str, int]:
        """How many pairs of nodes are in each state; a pair on which several terms act is in that of the least sure of
        them, split where one of them is."""
        sure = {state: k for k, state in enumerate(("fused", "near", "undecided", "split"))}
        worst: dict[frozenset[Hashable], str] = {}
        ends = (self.edges[column].tolist() for column in ("tail", "head", "state"))
        for tail, head, state in zip(*ends, strict=True):
            pair = frozenset((tail, head))
            worst[pair] = max(worst.get(pair, state), state, key=sure.__getitem__)
        found = Counter(worst.values())
        return {state: found[state] for state in STATES}

    def __str__(self) -> str:
        count = self.counts
        states = ", ".join(f"{number} {state}" for state, number in count.items() if number or state != "near")
        sizes = ", ".join(str(len(group)) for group in self.members()[:8]) + (", ..." if self.count > 8 else "")
        groups = f"{self.count} clusters of sizes {sizes}"
        if self.count == 1:
            groups = f"1 cluster of size {sizes}"
        elif self.count == len(self.labels):
            groups = f"{self.count} clusters, a node each"
        rest = f"; {self.ended}, so that not all proofs were looked for" if self.ended else ""
        rest += f"; {self.note}" if self.note else ""
        of = "edges" if sum(count.values()) == len(self.edges) else "pairs of nodes, over all terms"
        return f"{groups}; {of}: {states} ({self._proved(count)}{rest})"

    def __repr__(self) -> str:
        low, high = self.count_range
        proved = f"{low}" if low == high else f"between {low} and {high}"
        return f"<Clusters: {self.count} of {len(self.labels)} nodes; proved: {proved}>"

    def _html(self) -> Iterable[Html]:
        from ...base.tables import as_html

        groups = self.members()
        yield title(f"{plural(self.count, 'cluster')} of {len(self.labels)} nodes")
        yield sentence(str(self))
        rows = [(self.labels[group[0]], len(group), listed(group)) for group in groups[:SHOWN]]
        yield table(("cluster", "nodes", "which"), rows)
        yield more(len(groups), SHOWN)
        yield details("the edges", as_html(self.edges))

    def _proved(self, count: dict[str, int]) -> str:
        """The proof in a few words."""
        named = ", ".join(f"{name} ({number})" for name, number in self.split_in.items())
        coordinates = f"split in {named}" if named else ""
        if self.certain:
            return f"every edge is decided by a proof{f'; {coordinates}' if coordinates else ''}"
        said: list[str] = []
        if count["near"]:
            near = self.edges["state"] == "near"
            bound = float(self.edges["bound"][near].max())  # pyright: ignore[reportArgumentType]
            said.append(f"near: proved to be at most {bound:.2g} apart{self.unit} at every optimum")
        if count["undecided"]:
            said.append(f"undecided: apart unless they are the same in this answer, {self.advice}")
        if coordinates:
            said.append(coordinates)
        low, high = self.count_range
        between = "" if low == high else f"between {low} and "
        said.append(f"proved: {between}{plural(high, 'cluster')}")
        return "; ".join(said)


def clusters(certificate: Certificate, prove: bool = False, splitter: Splitter | None = None) -> Clusters:
    """The clusters of a certified answer.

    With ``prove`` edges that are near are tried for a proof that they are fused, and the others, by the curvature of
    the clusters that were proved and then by ``splitter``, for a proof that they are split.
    """
    import pandas as pd

    from ...base.tables import LabelledTable

    form = certificate.form
    if not form.clustered:
        raise TermError(
            f"clusters are nodes that agree along edges, of which the model has none: rows of "
            f"{form.unlike_edges[0].name} make no clusters; solution.held() tells which rows of the penalties hold"
        )
    claims, ended = _claims(certificate), list[str]()
    if prove and certificate.valid:
        with cut_short() as ended, alarm():
            _prove(certificate, claims, splitter)
    none = pd.DataFrame(columns=list(COLUMNS))
    table = LabelledTable(pd.concat([claim.table(form) for claim in claims], ignore_index=True) if claims else none)
    number = joined(form, claims, _together)
    least = joined(form, claims, lambda claim: claim.state != "split")
    most = joined(form, claims, lambda claim: claim.state == "fused")
    first = {old: new for new, old in enumerate(dict.fromkeys(number.tolist()))}
    by_label = {label: first[int(k)] for label, k in zip(form.labels, number, strict=False)}
    between = len(np.unique(least)), len(np.unique(most))
    certain = certificate.valid and bool(table["certain"].all())
    left_out = " and ".join(dict.fromkeys(edge.name for edge in form.unlike_edges))
    notes = [certificate.note] * (certificate.scope == OWN_TERMS) + [f"rows of {left_out} make none"] * bool(left_out)
    advice, enough = _advice(certificate, claims, prove)
    counted, unit = _counted(form, claims), form.space.unit
    said = "".join(ended), counted, "; ".join(notes), advice, unit, enough
    return Clusters(table, by_label, certain, between, *said)


def _advice(certificate: Certificate, claims: list[_Claim], proved: bool) -> tuple[str, float]:
    """What may decide the edges that are undecided, and the relative gap that should decide all of them; 0 where there
    is none that doubles can tell."""
    shares = np.concatenate([np.zeros(0), *(claim.share[claim.state == "undecided"] for claim in claims)])
    enough = 0.5 * shares * (certificate.relative_gap if certificate.valid else 0.0)
    by_gap, looked = enough >= LEAST, proved or not certificate.valid
    if not len(shares):
        return "", 0.0
    said = ["no proof was found" if looked else "clusters(prove=True) looks for proofs"]  # and solves further for them
    if by_gap.all():
        said.append(f"gap={enough.min():.0e} should decide them")
    elif by_gap.any():
        said.append(f"a smaller gap= should decide {by_gap.sum()} of them")
    return "; ".join(said), float(enough.min()) if by_gap.all() else 0.0


def _counted(form: Form, claims: list[_Claim]) -> dict[str, int]:
    """The number of edges on which each coordinate is split; empty where that tells no coordinate from another."""
    split = np.concatenate([np.zeros((0, form.d), dtype=bool), *(claim.split_in(form) for claim in claims)])
    named = split[split.any(axis=1)]
    counts = zip(map(str, form.space.coordinates), named.sum(axis=0).tolist(), strict=True)
    return {} if named.all() else {name: number for name, number in counts if number}


def cluster_count(certificate: Certificate) -> int:
    """``clusters(certificate).count``, without the tables."""
    return len(np.unique(joined(certificate.form, _claims(certificate), _together)))


def _together(claim: _Claim) -> Array:
    """A mask of the edges inside a cluster."""
    return np.isin(claim.state, ("fused", "near")) | ((claim.state == "undecided") & (claim.difference == 0.0))


@dataclass
class _Claim:
    """The states of the edges of one block between nodes; each is refined as proofs come in."""

    place: int  # of the block in the form
    edge: EdgeBlock
    state: Array
    slack: Array
    difference: Array
    bound: Array
    apart: Array  # (m, k): coordinates in which the ends are proved to differ
    share: Array  # of the gap, at which they would be near or split, (m,); 0 where none is known

    def table(self, form: Form) -> pd.DataFrame:
        import pandas as pd

        labels, edge = form.labels, self.edge
        ends = {"tail": [labels[t] for t in edge.tail], "head": [labels[h] for h in edge.head]}
        values = {"state": self.state, "slack": self.slack, "difference": self.difference, "bound": self.bound}
        names = list(map(str, form.space.coordinates))
        split_in = [", ".join(names[j] for j in np.flatnonzero(row)) for row in self.split_in(form)]
        values |= {"certain": np.isin(self.state, ("fused", "split")), "split_in": split_in}
        return pd.DataFrame({"term": edge.name, **ends, **values})

    def split_in(self, form: Form) -> Array:
        """The coordinates (m, d) in which the ends are proved to differ, where the penalty acts on each by itself."""
        out = np.zeros((len(self.state), form.d), dtype=bool)
        if form.d > 1 and self.edge.penalty.pieces(form.width(self.edge)) == 1:
            out[:, self.edge.coordinates] = self.apart & (self.state == "split")[:, None]
        return out


def _claims(certificate: Certificate) -> list[_Claim]:
    """The states that the certificate tells by itself."""
    form, gap = certificate.form, upper_gap(certificate)
    whole = certificate.strong_convexity if certificate.valid else 0.0
    mu, size = node_convexity(form), scales(form, certificate.w)
    edges = [(k, edge) for k, edge in enumerate(form.edges) if edge.map.noun == "edge"]
    claims = [_of_block(certificate, k, edge, gap, radius(edge, mu, whole, gap), size) for k, edge in edges]
    for one, other in permutations(claims, 2):
        if np.isin(other.edge.columns(form.d), one.edge.columns(form.d)).all():
            _carry(one, other, form.n)
    return claims


def _carry(one: _Claim, other: _Claim, n: int) -> None:
    """What a term proves of two nodes holds for another one on no other coordinates, whatever its penalty."""
    import pandas as pd

    ends = (np.sort([claim.edge.tail, claim.edge.head], axis=0).astype(np.int64) for claim in (one, other))
    known, asked = (low * n + high for low, high in ends)  # a number for the two nodes of each edge
    for state in ("fused", "near"):
        bounds: Any = pd.Series(one.bound, known)[one.state == state]
        proved = bounds.groupby(level=0).min().reindex(asked).to_numpy()
        there = (other.state == "undecided") & ~np.isnan(proved)
        other.state[there], other.bound[there] = state, np.minimum(other.bound, proved)[there]


def _of_block(certificate: Certificate, k: int, edge: EdgeBlock, gap: float, reach: Array, size: Array) -> _Claim:
    z = edge.difference(certificate.w)
    difference = row_norm(z)
    if is_equality(edge.penalty, z.shape[1]):
        fused, slack = np.full(len(z), "fused", dtype=object), np.full(len(z), np.inf)
        return _Claim(k, edge, fused, slack, difference, np.zeros(len(z)), np.zeros(z.shape, dtype=bool), slack)
    found = nearness(edge, certificate.dual_point.flows[k], spread_of(certificate, k), gap)
    kink = has_kink(edge.penalty, certificate.form.width(edge))
    columns = edge.coordinates
    far = np.minimum(found.largest, np.abs(z) * (1 + 1e-12) + reach[:, None])
    room = NEGLIGIBLE * size[columns]
    near = kink & (far <= room).all(axis=1)
    equal = kink & (found.value == 0.0)
    apart = difference * (1 - 1e-12) > reach
    state = np.where(equal, "fused", np.where(apart, "split", np.where(near, "near", "undecided"))).astype(object)
    slack = np.where(kink & np.isfinite(found.load), np.maximum(edge.weight * (1.0 - found.load), 0.0), 0.0)
    bound = np.minimum(found.length, difference * (1 + 1e-12) + reach) if kink else difference + reach
    with np.errstate(all="ignore"):  # bounds by slack are in proportion to the gap, those by curvature to its root
        shares = [(difference / reach) ** 2]
        if kink:
            slack_stays = (np.abs(z) / size[columns]).max(axis=1) < 1.0 - found.load  # or else the difference does
            shares.append(np.where(slack_stays[:, None], room / found.largest, 0.0))
            shares.append((np.maximum(room - np.abs(z), 0.0) / reach[:, None]) ** 2)
        share = np.max([np.nan_to_num(each.reshape(len(z), -1).min(axis=1)) for each in shares], axis=0)
    return _Claim(k, edge, state, slack, difference, bound, _beyond(z, reach), share)


def _beyond(z: Array, reach: Array) -> Array:
    """The coordinates of differences that are further from 0 than any optimum is from this answer."""
    return np.abs(z) * (1 - 1e-12) > reach[:, None]


# ---- what is proved on demand ----------------------------------------------------------------------------------------
def _prove(certificate: Certificate, claims: list[_Claim], splitter: Splitter | None) -> None:
    """Refines the states by what is proved on demand."""
    form = certificate.form
    if form.unlike_edges:
        parts = separate(form)
        masks = parts.together([at == 0.0 for at, _ in held(certificate, parts)], len(form.edges))
    else:
        masks = fused(certificate)
    for claim in claims:
        mask = masks[claim.place] & (claim.state != "split")
        claim.state[mask], claim.bound[mask] = "fused", 0.0
    member = joined(form, claims, lambda claim: claim.state == "fused", observed=False)
    for claim, reach in zip(claims, cluster_radius(certificate, member, [c.edge for c in claims]), strict=True):
        open_ = ~np.isin(claim.state, ("fused", "split"))
        claim.state[open_ & (claim.difference * (1 - 1e-12) > reach)] = "split"
        claim.apart |= _beyond(claim.edge.difference(certificate.w), reach)
        claim.bound = np.where(open_, np.minimum(claim.bound, claim.difference * (1 + 1e-12) + reach), claim.bound)
    if splitter is None:
        return
    of_block = {claim.place: claim for claim in claims}
    for k, rows in splitter(certificate, _masks(form, claims, "undecided"), member):
        of_block[k].state[rows] = "split"


def _masks(form: Form, claims: list[_Claim], state: str) -> list[Array]:
    """Masks of the edges of each block of the form that are said to be in a state."""
    masks = [np.zeros(edge.count, dtype=bool) for edge in form.edges]
    for claim in claims:
        masks[claim.place] = claim.state == state
    return masks

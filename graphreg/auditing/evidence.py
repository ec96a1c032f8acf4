"""The findings of an audit as they come in, the order in which they are told, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..base.messages import count
from ..problem import Problem
from .algorithms import AbstractAlgorithm
from .balance import ONE
from .behaviour import ENDS, PATH, Repeats, order, steep, stressed, unsettled
from .course import Course
from .limits import Limit
from .locality import NEVER, Delays, confirmed, delays
from .report import IN_THE_LIMIT, RIGHT, UNCLAIMED, Finding

ORDER = (
    *("run", "limit", "digits", "locality", "promptness", "mixing", "balance", "dictionary", "drift", "start"),
    *("steps", "steep data", "bias", "repetition", "order"),
)
SOME = 0.2  # of the pairs of nodes that are no neighbours, that may be early where single reads are the mistake
DESPITE = {  # a right limit, by the evidence that fails
    "repetition": "right limit, not repeatable",
    "locality": "right limit, not local",
    "promptness": "right limit, late",
    "steps": "right limit, long steps",
    "steep data": "right limit, fixed steps",
}
EVEN = {("dictionary", "name"), ("drift", "name")}  # of mistakes that are made at all nodes alike
GROWN = 1e2  # times the size of the points, a distance at which a run has gone
SHOWN = 3  # pairs of nodes that a sentence lists


class Evidence:
    """Findings, and which claims they speak of."""

    def __init__(self, claims: tuple[str, ...] | None, known: tuple[str, ...]) -> None:
        self.claims = known if claims is None else claims
        self.explicit = claims is not None
        self.found: list[Finding] = []
        self.at: Callable[[str], None] = lambda stage: None
        self.doubtful: Finding | None = None  # of locality, in place of reads that another mistake makes needless

    def add(self, evidence: str, outcome: str, sentence: str) -> None:
        self.found.append(Finding(evidence, outcome, sentence))

    def skip(self, evidence: str, why: str) -> None:
        self.add(evidence, "not tried", why)

    def _claimed(self, claim: str, evidence: str, sentence: str, name: str = "") -> None:
        """Something that fails, and its name, if it was claimed; else remarks."""
        claimed = claim in self.claims
        self.add(evidence, "fails" if claimed else "remark", sentence)
        if name:
            self.add(evidence, "name" if claimed else "remark", name)

    # ---- one piece after the other -----------------------------------------------------------------------------------
    def limit(self, limit: Limit, where: str = "") -> None:
        raised = any(each.evidence == "run" and each.outcome == "fails" for each in self.found)
        if raised or limit.kind == "undecided":
            self.add("limit", "remark", f"{'before it failed: ' * raised}{where}{limit.why}")
        elif limit.kind in (RIGHT, IN_THE_LIMIT):
            self.add("limit", "holds", where + limit.why)
        else:
            self._claimed("limit", "limit", where + limit.why)

    def repetition(self, found: Repeats) -> None:
        if not found.same_seed:
            why = "something outside of the arguments lasts from one run to the next, or a draw ignores the seed"
            self._claimed("repeatable", "repetition", "two runs with the same seed differ", f"hidden state: {why}")
        else:
            other = "" if found.other_seed else "; another seed gives another run"
            self.add("repetition", "holds", f"two runs with the same seed have the same bits{other}")

    def locality(
        self, algorithm: AbstractAlgorithm, problem: Problem, seed: int, sums: int, noisy: bool, wrong: bool
    ) -> None:
        """``sums`` are those over all nodes that the algorithm has declared and recorded; ``noisy``, whether its runs
        differ with their seeds, and ``wrong``, whether its limit is."""
        found = delays(algorithm, problem, seed, self.at)
        if found is None or not found.seen:
            self.skip("locality", "no change of targets could be seen at another node")
            if wrong and found is not None and (found.hops == 1).any():
                self.add("locality", "name", "no messages: no node hears of any other")
            return
        self._early(algorithm, found, sums, wrong)
        if noisy:
            self.skip("promptness", "as runs differ with their seeds, what is late may be so by chance")
        elif found.at_once:
            self.skip("promptness", "there are no messages between neighbours that could be late")
        elif not (found.early() and found.share_early > SOME):
            self._late(algorithm, problem, seed, found, wrong)

    def _early(self, algorithm: AbstractAlgorithm, found: Delays, sums: int, wrong: bool) -> None:
        early = found.early()
        tried = f"targets of {int(found.tried.sum())} of {len(found.labels)} nodes changed"
        if algorithm.isolated and (early or found.at_once):
            pair = f", first {found.pair(*early[0])}" if early else ""
            said = f"nodes know of each other too early{pair}, though every node was run by itself"
            self._claimed("local", "locality", said, "nodes share what the step keeps outside of its arguments")
        elif algorithm.isolated:
            self.add("locality", "holds", f"every node was run by itself; no other way was seen ({tried})")
        elif found.at_once and not (self.explicit and "local" in self.claims):
            two = "" if early or (found.hops[found.hops < float("inf")] > 2).any() else ", or two exchanges in a round"
            self.add("locality", "remark", f"every node hears of every other at once: a server, or one place{two}")
        elif early:
            apart = found.hops[*early[0]] == float("inf")
            where = "in another component" if apart else f"{found.hops[*early[0]]:.0f} hops away"
            said = f"{count(len(early), 'pair')} of nodes know of each other too early, first "
            said += f"{found.pair(*early[0])}, {where}, after {count(int(found.rounds[*early[0]]), 'round')}"
            sure = not found.like_one_place if apart else wrong or found.share_early <= SOME
            if sums:
                why = f"it records sums over all nodes ({sums} in the main run), by which they may"
                self.add("locality", "remark", f"{said}; {why}")
                return
            why = "a server or one place" if apart else "several exchanges in a round, one after the other"
            doubt = Finding("locality", "remark", f"{said}; {why}, or reads of non-neighbours: no telling which")
            if sure or (self.explicit and "local" in self.claims):
                name = f"read of a non-neighbour: node {found.pair(*early[0])}"
                self._claimed("local", "locality", said, name if sure else "")
                self.doubtful = doubt if not (apart or self.explicit) and found.share_early > SOME else None
            else:
                self.found.append(doubt)
        else:
            pace = "" if (hops := found.hops_a_round) == 1 else f"; about {hops} exchanges a round, everywhere"
            self.add("locality", "holds", f"no node hears of another before its messages can come ({tried}){pace}")

    def _late(self, algorithm: AbstractAlgorithm, problem: Problem, seed: int, found: Delays, wrong: bool) -> None:
        if not problem.form.smooth:
            self.skip("promptness", "what is late is judged where losses are smooth")
            return
        if found.late():
            found = confirmed(algorithm, problem, found, seed)
        detours = found.by_detour()
        unused = [(j, i) for j, i in detours if (i, j) in detours and j < i]
        if one_way := [(j, i) for j, i in detours if (i, j) not in detours]:
            said = ", ".join(found.pair(j, i) for j, i in one_way[:SHOWN])
            why = "is held back, or the link is used one way and it makes a detour: no telling which"
            self.add("promptness", "remark", f"what comes late or not at all ({said}) {why}")
        late = [each for each in found.late() if each not in detours]
        if unused:
            self._unused(found, unused, wrong)
        elif late:
            pairs = ", ".join(found.pair(j, i) for j, i in late[:SHOWN])
            wait = max(int(found.rounds[j, i]) for j, i in late) - int(found.rounds[found.hops == 1].min())
            sentence = f"late by {count(wait, 'round')}: {count(len(late), 'message')} between neighbours, {pairs}"
            self._claimed("prompt", "promptness", sentence, f"stale message: {pairs}")
        elif found.pace > 1:
            pace = f"{found.pace:g} rounds a hop"
            self._claimed("prompt", "promptness", f"messages take {pace}", f"stale message: {pace}")
        elif not one_way:
            self.add("promptness", "holds", "something of every neighbour arrives in time")

    def _unused(self, found: Delays, edges: list[tuple[int, int]], wrong: bool) -> None:
        """Edges that nothing crosses; where the limit is not wrong they may be crossed later than was looked."""
        said = f"nothing crosses {[(found.labels[j], found.labels[i]) for j, i in edges[:SHOWN]]}"
        seen = f"held back, or {said} in the rounds that were looked at"
        if wrong:
            self._claimed("prompt", "promptness", said, f"missing edge: {said}")
        elif any(found.rounds[j, i] < NEVER for j, i in edges):
            self._claimed("prompt", "promptness", seen, f"stale message, or missing edge: {seen}")
        else:
            self.add("promptness", "remark", seen)

    def order(self, algorithm: AbstractAlgorithm, problem: Problem, course: Course, seed: int, settled: bool) -> None:
        found = order(algorithm, problem, course, seed)
        if found is None:
            self.skip("order", "the nodes cannot be put in another order")
        elif not found[1] <= ENDS:
            how = f"changes the {'limit' if settled else 'run'} (by {found[1]:.1e})" if found[1] < GROWN else "diverges"
            self.add("order", "consistent", f"another order of the nodes {how}")
            even = [each for each in self.found if (each.evidence, each.outcome) in EVEN]
            self._withdraw(even := [each for each in even if "missing edge" not in each.sentence])
            if even:
                where = "at one node or edge alone, as where a sum leaves out a neighbour, or neighbours are taken one"
                why = "after another, so that their order matters: what is done alike everywhere knows no order"
                self.add("order", "name", f"something is done {where} {why}")
        elif found[0] > PATH:
            self.add("order", "remark", "another order of the nodes changes the path, and not the limit")
        else:
            self.add("order", "holds", "another order of the nodes changes nothing")
            tried = ("drift", "remark") in {(each.evidence, each.outcome) for each in self.found}
            if tried and not any(edge.ground for edge in problem.form.edges):  # on equal data one node changes nothing
                of_one = [each for each in self.found if each.evidence == "balance" and ONE.search(each.sentence)]
                self._withdraw(of_one)

    def _withdraw(self, names: list[Finding]) -> None:
        self.found = [replace(each, outcome="remark") if each in names else each for each in self.found]

    def stress(self, algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> None:
        for instance, course in stressed(algorithm, problem, seed):
            if course.ended == "raised":
                self.skip("steps", f"with {instance} {course.why}")
            elif unsettled(course):
                how = "diverges" if course.ended == "diverged" else "goes to and fro and does not settle"
                why = "step too long for the coupling; on the problem given it happens to converge"
                self._claimed("steps", "steps", f"with {instance} it {how}", why)
                return
            else:
                self.add("steps", "holds", f"with {instance} it does not go to and fro")

    def steep_data(self, algorithm: AbstractAlgorithm, problem: Problem, seed: int) -> None:
        for instance, course in steep(algorithm, problem, seed):
            if course.ended == "diverged":
                why = "steps do not follow the data: right here, they are too long where losses are steeper"
                self._claimed("steps", "steep data", f"with {instance} it diverges", why)
                return
        self.add("steep data", "holds", "with features of one node, and of all, x 10 it does not diverge")

    # ---- all of them -------------------------------------------------------------------------------------------------
    def ordered(self) -> tuple[Finding, ...]:
        """The findings in the order of the evidence; the first name is the name, the others are consistent with it. A
        limit that balances another problem exactly needs no reads that may be several exchanges."""
        found, out = self.found, list[Finding]()
        if self.doubtful and any((each.evidence, each.outcome) == ("balance", "name") for each in found):
            found = [self.doubtful, *(each for each in found if each.evidence != "locality")]
        for each in sorted(found, key=lambda found: (*ORDER, found.evidence).index(found.evidence)):
            named = any(other.outcome == "name" for other in out)
            instead = {"name": "consistent"} if named else {"consistent": "remark"}
            out.append(replace(each, outcome=instead.get(each.outcome, each.outcome)))
        return tuple(out)

    def verdict(self, limit: Limit | None, ended: str) -> str:
        failed = {each.evidence for each in self.found if each.outcome == "fails"}
        if limit is None or limit.kind == "none" or ended == "raised":
            return "no limit" if ended in ("raised", "ended", "diverged") else "undecided"
        if limit.kind not in (RIGHT, IN_THE_LIMIT):
            return limit.kind if "limit" in self.claims else UNCLAIMED
        return next((verdict for evidence, verdict in DESPITE.items() if evidence in failed), limit.kind)

#!/usr/bin/env python3
"""Plant wrong rules in the checker, one at a time, and see that its proof breaks at each: ``python planted.py``.

Each is a place of the program and what stands there instead. Needs Coq; `make proofs` must have passed. Exit status 1
where a proof holds of a wrong rule, or where the program with it does not even compile.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("Definitions", "Numbers", "Compute", "ExpLog", "Functions", "Checker", "Sound")
RULES = [
    # near: the flow may use all of its capacity, which is the rule that once was in graphreg/verify.py
    ("Checker", "qlt c' (fst t) && qle gap", "qle c' (fst t) && qle gap"),
    # near: the gap is compared with c r in place of (c - c') r
    ("Checker", "qle gap ((fst t - c') * r)", "qle gap (fst t * r)"),
    # split: a bound that is as good as P(w) excludes nothing
    ("Checker", "(high <? bound)%Z", "(high <=? bound)%Z"),
    # a claim is about the edge at the same place of the first block
    ("Checker", "if claimable en then Some (k + e)%nat", "if claimable en then Some e"),
    # what is left of the balance is forgotten
    ("Checker", "No (Unbalanced (fst (place_of d p)) (snd (place_of d p)) q)", "Ok (- sum)%Z"),
    # within a box it costs nothing
    ("Checker", "Ok (- (sum + charged b rest))%Z", "Ok (- sum)%Z"),
    # w need not be in the box
    ("Checker", "demand (qle (largest w) b) OutsideBox", "demand true OutsideBox"),
    # offsets and centres do not count
    ("Checker", "(sum + up (q - pushed (plus e) u))", "(sum + up q)"),
    # the base of a scale is not rounded
    ("Checker", "Some p => to_double (weight e / finite (get p t))", "Some p => weight e / finite (get p t)"),
    # summands are rounded down
    ("Numbers", "(- ((- Qnum a * Zpos m) / Zpos (Qden a)))%Z", "(Qnum a * Zpos m / Zpos (Qden a))%Z"),
    # two coordinates share a variable, where a column is out of range
    ("Definitions", "(fst (fst c) <? nodes m)%N && (snd (fst c) <? columns m)%N", "(fst (fst c) <? nodes m)%N"),
    # prices of Huber's loss have no domain
    ("Compute", "guard (qle (qabs v) d) (v * (half v + y))", "Some (v * (half v + y))"),
    # nor has the price of a hinge one on one side
    ("Compute", "guard (qle (-(1)) (v * y) && qle (v * y) 0) (v * y)", "guard (qle (v * y) 0) (v * y)"),
    # prices of classes need not add up to 0
    ("Compute", "if qzero (totalQ b) then sum_opt entropy (bump y b) else None", "sum_opt entropy (bump y b)"),
    # the gamma loss forgets the scale of its entropy
    ("Compute", "Some (y * q - (1 - v))", "Some (q - (1 - v))"),
    # the dual norm of LInf is taken for that of L1
    ("Compute", "LInf, _ => guard (qle (norm1Q b) 1) 0", "LInf, _ => guard (qle (normIQ b) 1) 0"),
    # the ends of a box are confused
    ("Compute", "match (if qlt 0 v then h else l) with", "match (if qlt 0 v then l else h) with"),
    # a hinge falls for ever
    ("Compute", "if qlt 0 (y * x) then Stays else Grows", "if qlt 0 (y * x) then Falls else Grows"),
    # a Poisson loss falls where its count is not 0
    ("Compute", "if qlt x 0 && qzero y then Falls else Grows", "if qlt x 0 then Falls else Grows"),
    # a multinomial loss falls where all of its numbers grow alike
    ("Compute", "then (if forallb (qle (nth y v 0)) v then Stays else Falls) else", "then Falls else"),
    # powers of exp are rounded down
    ("Compute", "squares k (- (- t * t / ONE))%Z", "squares k (t * t / ONE)%Z"),
    # the series of log is taken to be right to the last digit
    ("Compute", "Some (e * series e 11 0 + 4 * Z.abs e # LOG)", "Some (e * series e 11 0 # LOG)"),
]


def compiled(folder: Path, names: tuple[str, ...]) -> tuple[str, str] | None:
    """The first file of these that does not compile, and what Coq says."""
    for name in names:
        command = ["timeout", "300", "coqc", "-q", "-R", ".", "Checker", f"{name}.v"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return name, " ".join(done.stderr.split()) or "no proof in 300 seconds"
    return None


def main() -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        whole, planted = Path(folder, "whole"), Path(folder, "planted")
        whole.mkdir()
        for name in FILES:
            shutil.copy(HERE / f"{name}.v", whole)
        if said := compiled(whole, FILES):
            print("without a wrong rule:", *said)
            return 1
        for name, right, rule in RULES:
            shutil.copytree(whole, planted)
            text = (planted / f"{name}.v").read_text()
            if text.count(right) != 1:
                print(f"{name}.v has {text.count(right)} of: {right}")
                wrong += 1
            (planted / f"{name}.v").write_text(text.replace(right, rule))
            said = compiled(planted, FILES[FILES.index(name) :])
            lemma = "nothing"
            if said:
                lines = (planted / f"{said[0]}.v").read_text().splitlines()
                at = int(re.findall(r"line (\d+)", said[1] + "line 1")[0])
                lemma = next((x for x in reversed(lines[:at]) if re.match("Lemma|Theorem|Definition|Fixpoint", x)), "")
                lemma = " ".join(lemma.split()[:2])
            if not said or not lemma.startswith(("Lemma", "Theorem")):
                wrong += 1
            print(f"{name}: {rule}\n    breaks {lemma}" + (f" of {said[0]}.v" if said else ""), flush=True)
            shutil.rmtree(planted)
    print(f"{len(RULES)} wrong rules, of which {wrong} did not break a proof")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""P and Q in exact arithmetic, for tests: by the way in which proofs are found."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from graphreg import verify
from graphreg.certificate.proof.attempts import lower_bound
from graphreg.certificate.proof.prove import _upper
from graphreg.certificate.proof.statement import statement, write_out
from graphreg.errors import ProofError


def exact_primal(form, w):
    """An upper bound of P(w), in exact arithmetic but for the last rounding upwards (2^-200 per term).

    Where a constraint does not hold exactly at the floats w, P is taken at the nearest point at which it does.
    """
    verify.begin(True)
    form, _ = write_out(form, w, form.nothing())
    return Fraction(_upper(form, verify.Model(statement(form)), w)[1], 1 << verify.UNIT)


def exact_dual(form, point):
    """A lower bound of inf P by an exactly balanced dual point near ``point``; None where none is found."""
    verify.begin(True)
    w = np.zeros(form.shape)
    form, point = write_out(form, w, point)
    try:
        lower = lower_bound(form, verify.Model(statement(form)), w, point)
    except ProofError:
        return None
    return Fraction(lower.bound, 1 << verify.UNIT)

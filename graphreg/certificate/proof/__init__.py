"""Proofs: a certificate written down in exact numbers, to be checked by `graphreg.verify` or by anybody else.

The certificate's own dual point is made exact (`conserve`), its primal point put exactly inside every constraint
(`prove`); both bounds are then those of exact arithmetic. docs/proofs.md has the format.
"""

from .prove import Proved, lines, model_hash, prove
from .statement import checked_values, text

__all__ = ["Proved", "checked_values", "lines", "model_hash", "prove", "text"]

"""The laws that every loss, every penalty and every iterative method obeys, as reports that say which law failed, where
and by how much.

>>> report = check_penalty(L1())  # doctest: +SKIP
>>> report.ok  # doctest: +SKIP
True
>>> print(report)  # doctest: +SKIP
"""

from .losses import check_loss
from .methods import check_method
from .penalties import check_penalty
from .report import Failure, Report

__all__ = ["Failure", "Report", "check_loss", "check_method", "check_penalty"]

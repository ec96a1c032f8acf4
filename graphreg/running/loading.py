"""A solution from a file, judged by the problem that it is of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificate import Certifier, check_point
from ..form import Form
from .budget import Outcome
from .saved import file_of, open_file, proved, value_of
from .solution import Solution
from .statuses import judged


def load(path: Any, form: Form, gap: float) -> Solution:
    """The solution of a form in a file, its bounds proved anew."""
    store = open_file(path, form)
    with store.reading(), np.errstate(over="ignore", invalid="ignore"):
        saved = value_of(store)
        check_point(form, saved["certificate"]["w"], saved["dual"])
        certifier = Certifier(form)
        certifier.spot_checks.begin()
        certificate = proved(certifier, saved["certificate"], saved["dual"])
    outcome = judged(Outcome(certificate, certifier, "read"), gap)
    said, name = saved["solution"], repr(str(file_of(path)))
    message = f"{outcome.message} Read from {name}, which says {said['status']!r}; the bounds are proved anew."
    own = {name: said[name] for name in ("method", "rounds", "seconds", "seed")}
    return Solution(form, certificate, outcome.status, message, **own)

"""The things that can be reached from an object: its arrays, and which of these hold given numbers or have many
rows."""

from __future__ import annotations

import gc
import weakref
from types import FrameType, FunctionType, ModuleType

import numpy as np

PASSED = (type, ModuleType, FrameType, *weakref.ProxyTypes, weakref.ref)  # through which everything is reached


def arrays_of(*roots):
    """Every array that is reached by attributes, containers, closures, views of arrays and bytes."""
    found, seen, left = [], set(), list(roots)
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, PASSED):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            found.append(each)
            left += [each.base] if each.base is not None else []
            left += each.ravel().tolist() if each.dtype.hasobject else []
        elif isinstance(each, (bytes, bytearray)):
            found.append(np.frombuffer(each[: len(each) // 8 * 8]))
        elif isinstance(each, memoryview):
            left.append(each.obj)
        elif isinstance(each, FunctionType):  # not its globals
            left += [each.__closure__, each.__defaults__, each.__kwdefaults__]
        else:
            left += gc.get_referents(each)
        found_here = found[-1:]
        seen.update(map(id, found_here))
    return found


def holding(arrays, numbers):
    """Those arrays in which some of the numbers are."""
    return [each for each in arrays if each.dtype.kind == "f" and np.isin(each, numbers).any()]


def most_rows(arrays):
    """Of the arrays with rows and columns; and the most numbers in a row of one that has none."""
    rows = max((len(each) for each in arrays if each.ndim > 1), default=0)
    return rows, max((each.size for each in arrays if each.ndim == 1), default=0)

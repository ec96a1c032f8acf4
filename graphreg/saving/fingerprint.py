"""The identity of a run: problem and method, entry by entry, so that a checkpoint of another one can be told apart.

An entry is a short text (a number, a name), or a digest that begins with # where that would be long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from hashlib import blake2b
from inspect import getclosurevars
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..form import Form
from ..inputs import IntegerLabels, NodeData
from ..running import AbstractMethod
from ..terms import Strength

DERIVED = ("n", "role", "keys", "text")  # what follows from other fields of a block, and from its term
WORDS = {
    "node": "nodes of the samples",
    "X": "features of the samples",
    "y": "targets",
    "offset": "offsets",
    "base_scale": "scales of the samples",
    "tail": "tails of the edges",
    "head": "heads of the edges",
    "base_weight": "edge weights",
    "features": "coordinates",
    "K": "matrix",
}
MOST = 4  # differences that a message lists
LONG = 42  # letters of a value that it does not show
Fingerprint = dict[str, str]


def of_problem(form: Form) -> Fingerprint:
    """The form: labels, data, graphs, weights, strengths, losses and penalties with their parameters."""
    losses = [f"{type(block.loss).__name__} {k}" for k, block in enumerate(form.samples, 1)]
    terms = [f"{edge.name} {k}" for k, edge in enumerate(form.edges, 1)]
    out = {
        "the losses": ", ".join(losses),
        "the terms on edges": ", ".join(terms),
        "the number of nodes": str(form.n),
        "the labels of the nodes": entry(tuple(form.labels)),
        "the coordinates": entry(tuple(form.space.coordinates)),
    }
    for name, block in zip((*losses, *terms), (*form.samples, *form.edges), strict=True):
        out.update(_block(block, name))
    return out


def of_losses(form: Form) -> Fingerprint:
    """The losses with their parameters, and the coordinates: what is known of a form without its data."""
    entries = {"the features": ", ".join(form.space.names)}
    for k, block in enumerate(form.samples, 1):
        entries |= _term(block.loss, f"{type(block.loss).__name__} {k}")
    return entries


def _block(block: Any, name: str) -> Fingerprint:
    out: Fingerprint = {}
    for field in fields(block):
        value = getattr(block, field.name)
        if field.name == "map":
            out |= _block(value, name)
        elif field.name in ("loss", "penalty"):
            out |= _term(value, name, f" of {type(value).__name__}")
        elif isinstance(value, Strength):
            out[f"the {field.name} of {name}"] = entry(float(value))
        elif field.name not in DERIVED:
            out[f"the {WORDS.get(field.name, field.name)} of {name}"] = entry(value)
    return out


def _term(term: Any, name: str, whose: str = "") -> Fingerprint:
    """The class of a loss or a penalty and its parameters."""
    parameters = {f"the {key}{whose} in {name}": entry(value) for key, value in _parameters(term).items()}
    return {f"the class of {name}": _class(type(term))} | parameters


def of_method(method: AbstractMethod) -> Fingerprint:
    """The class of a method and its configuration."""
    return {"the class": _class(type(method))} | {key: entry(value) for key, value in _parameters(method).items()}


def differences(here: Fingerprint, present: Mapping[str, str]) -> list[str]:
    """The differences, in words; values are shown where they are short."""
    out: list[str] = []
    for key in (key for key in here if key in present and here[key] != present[key]):
        one, two = here[key], present[key]
        out.append(key if "#" in (one[:1], two[:1]) else f"{key} ({one} here, {two} in the file)")
    if not out:
        out += [f"{key} (only here)" for key in here if key not in present]
        out += [f"{key} (only in the file)" for key in present if key not in here]
    return [*out[:MOST], f"and {len(out) - MOST} more"] if len(out) > MOST else out


def entry(value: Any) -> str:
    """A number, a name or None as it is written; the digest of anything else."""
    text = _text(value)
    plain = value is None or isinstance(value, (str, int, float, np.generic))
    return text if plain and len(text) < LONG else f"#{_digest(text.encode())}"


def _digest(content: Any) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _class(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _parameters(value: Any) -> dict[str, Any]:
    """The parameters that an object was made from. Fields that are not shown are found out on the way, and data have
    own entries."""
    if is_dataclass(value):
        names = [f.name for f in fields(value) if f.repr and f.init]
    else:  # a class of the user's
        lazy = {
            name for kind in type(value).__mro__ for name, f in vars(kind).items() if isinstance(f, cached_property)
        }
        names = sorted(set(vars(value)) - lazy)
    found = {name: getattr(value, name) for name in names}
    loss = any(isinstance(each, NodeData) for each in found.values())
    return {n: each for n, each in found.items() if not isinstance(each, NodeData) and not (loss and n == "scale")}


def _text(value: Any) -> str:  # noqa: PLR0911 - one return per kind
    """The value as text, without what changes from process to process (addresses, the order of sets), with the versions
    of numpy, or with the layout in memory. joblib.hash would say all that, and cannot hash functions."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) or (type(value) is int and abs(value) < 2**53):
        return repr(float(value))  # the same for 1 and 1.0
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        numbers = np.ascontiguousarray(value).data.cast("B") if value.size else b""
        return f"array {value.dtype.str} {value.shape} {_digest(numbers)}"
    if isinstance(value, sp.csr_array):
        return _text([value.data, value.indices, value.indptr])
    if isinstance(value, (tuple, list, IntegerLabels, np.ndarray)):
        return f"row({','.join(map(_text, value))})"
    if isinstance(value, Mapping):
        return f"map({','.join(sorted(f'{_text(key)}:{_text(each)}' for key, each in value.items()))})"
    if isinstance(value, (set, frozenset)):
        return f"set({','.join(sorted(map(_text, value)))})"
    if isinstance(value, FunctionType):
        return _text(["function", _code(value.__code__), value.__defaults__, value.__kwdefaults__, _captured(value)])
    if isinstance(value, partial):
        return _text(["partial", value.func, value.args, value.keywords])
    if is_dataclass(value) and not isinstance(value, type):
        return _class(type(value)) + _text(_parameters(value))
    text = repr(value)
    return _class(type(value)) if " at 0x" in text and not isinstance(value, str) else text


def _code(code: CodeType) -> list[Any]:
    constants = [_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return [code.co_code, code.co_names, code.co_varnames, constants]


def _captured(function: FunctionType) -> list[Any]:
    """The values that a function takes from around it: numbers, texts and arrays; of the rest, their kind."""
    around = getclosurevars(function)
    values = [*around.nonlocals.values(), *around.globals.values()]
    plain = (bool, int, float, str, tuple, list, np.ndarray, np.generic, type(None))
    return [value if isinstance(value, plain) else _class(type(value)) for value in values]

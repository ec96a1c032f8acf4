"""Signatures in the reference: a field's default is its value, without the check that goes with it."""

from __future__ import annotations

from typing import Any

from griffe import Attribute, ExprCall, Extension


class Defaults(Extension):
    """``delta: float = checked(positive, 1.0)`` is shown as ``delta: float = 1.0``."""

    def on_attribute_instance(self, *, attr: Attribute, **_: Any) -> None:
        value = attr.value
        if isinstance(value, ExprCall) and str(value.function).rpartition(".")[2] == "checked":
            attr.value = value.arguments[-1] if len(value.arguments) > 1 else None

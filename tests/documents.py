"""The Python of a document, run as one module that can be imported, so that its classes can be found by name."""

from __future__ import annotations

import re
import sys
from functools import cache
from types import ModuleType

from places import DOCS

FENCE = re.compile(r"^```python[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.M | re.S)


@cache
def module_of(document: str) -> ModuleType:
    """The blocks of ``docs/<document>.md``, in order and in one namespace."""
    path = DOCS / f"{document}.md"
    text = path.read_text(encoding="utf-8")
    module = ModuleType(f"docs_{document.replace('-', '_')}")
    sys.modules[module.__name__] = module
    blocks = list(FENCE.finditer(text))
    assert blocks, f"{path.name} has no ```python block"
    for block in blocks:
        lines = "\n" * text.count("\n", 0, block.start("body"))  # a traceback shows the line of the document
        exec(compile(lines + block["body"], str(path), "exec"), vars(module))
    return module

"""Places of things. The one module that knows them, so that a test may stand in any folder below this one."""

from __future__ import annotations

from pathlib import Path

import graphreg

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
PACKAGE = Path(graphreg.__file__).resolve().parent
TESTS = Path(__file__).resolve().parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
EXAMPLES = ROOT / "examples"
DATA = ROOT.parent / "shared" / "data"  # data that are too large for the repository; tests that need them skip

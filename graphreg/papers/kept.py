"""Results on disk: one JSON file each, written as a whole, and read only where it says that it is what is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..running import replacing

WRITER = "graphreg papers"


@dataclass(frozen=True)
class Kept:
    """Results in a folder, or nowhere; ``damaged`` lists files that were found to be no results."""

    folder: Path | None = None
    damaged: list[str] = field(default_factory=list[str])

    def _place(self, kind: str, key: Mapping[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        name = sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
        return self.folder / key["id"] / f"{kind}-{name}.json"

    def read(self, kind: str, key: Mapping[str, Any]) -> Any:
        """What is kept under a key; None where nothing is, or the file is damaged or of another origin."""
        path = self._place(kind, key)
        if path is None or not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["written_by"] == WRITER and found["key"] == dict(key):
                return found["content"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
        self.damaged.append(path.name)
        return None

    def write(self, kind: str, key: Mapping[str, Any], content: Any) -> None:
        """Keep something. `ModelFileError` where that cannot be."""
        path = self._place(kind, key)
        if path is None:
            return
        text = json.dumps({"written_by": WRITER, "key": dict(key), "content": content}, allow_nan=False, indent=1)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(text.encode())
        except OSError as error:
            raise ModelFileError(
                f"{path}: the result cannot be kept: {error.strerror or error}; name another folder with --out"
            ) from None

"""Results on disk, read only where they say that they are what is asked for: a JSON file for each claim, written as a
whole, and a file with a line of JSON for each replication of an experiment."""

from __future__ import annotations

import json
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from graphreg.errors import ModelFileError

WRITER = "graphreg papers"
DAMAGE = (OSError, ValueError, LookupError, TypeError, RecursionError)


def put(path: Path, content: bytes) -> None:
    """A file, whose folder is made, that takes its place when it is whole; until then what was there stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.writing")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@dataclass(frozen=True)
class Kept:
    """Results in a folder, or nowhere; ``damaged`` lists files that were found to be no results."""

    folder: Path | None = None
    damaged: list[str] = field(default_factory=list[str])

    def _place(self, name: str, key: Mapping[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        return self.folder / key["id"] / name.format(sha256(_text(key).encode()).hexdigest()[:24])

    # ---- a claim -----------------------------------------------------------------------------------------------------
    def read(self, key: Mapping[str, Any]) -> Any:
        """The result that is kept of a claim; None where nothing is, or the file is damaged or of another origin."""
        path = self._place("result-{}.json", key)
        if path is None or not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["written_by"] == WRITER and found["key"] == dict(key):
                return found["content"]
        except DAMAGE:
            pass
        self.damaged.append(path.name)
        return None

    def write(self, key: Mapping[str, Any], content: Any) -> None:
        """Keep the result of a claim. `ModelFileError` where that cannot be."""
        path = self._place("result-{}.json", key)
        if path is None:
            return
        with _writing(path):
            put(path, json.dumps(_head(key) | {"content": content}, allow_nan=False, indent=1).encode())

    # ---- replications ------------------------------------------------------------------------------------------------
    def lines(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """The replications that are kept under a key; a line that is damaged, as the last one of a killed run may be,
        is left out."""
        path = self._place("replications-{}.jsonl", key)
        if path is None or not path.exists():
            return {}
        try:
            head, *rest = path.read_text(encoding="utf-8").splitlines() or [""]
            if json.loads(head) != _head(key):
                raise ValueError
        except DAMAGE:
            self.damaged.append(path.name)
            with _writing(path):
                path.unlink()
            return {}
        found: dict[str, Any] = {}
        for number, line in enumerate(rest, 2):
            try:
                entry = json.loads(line)
                found[_text(entry["of"])] = entry["content"]
            except DAMAGE:
                self.damaged.append(f"line {number} of {path.name}")
        return found

    def append(self, key: Mapping[str, Any], of: Mapping[str, Any], content: Any) -> None:
        """Keep a replication. `ModelFileError` where that cannot be."""
        path = self._place("replications-{}.jsonl", key)
        if path is None:
            return
        line = json.dumps({"of": of, "content": content}, allow_nan=False)
        with _writing(path):
            new = not path.exists()
            with path.open("a+b") as file:
                end = file.seek(0, 2)
                file.seek(max(end - 1, 0))
                torn = end > 0 and file.read(1) != b"\n"
                before = f"{_text(_head(key))}\n" if new else "\n" * torn
                file.write(f"{before}{line}\n".encode())


def _head(key: Mapping[str, Any]) -> dict[str, Any]:
    return {"written_by": WRITER, "key": dict(key)}


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """A context for what is written to a file, whose folder is made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{path}: the result cannot be kept: {said}; name another folder with --out") from None

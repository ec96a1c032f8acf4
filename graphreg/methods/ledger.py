"""The ledger: what was sent, by purpose."""

from __future__ import annotations

from dataclasses import dataclass, field

PURPOSES = ("method", "adaptation", "certificate")


@dataclass
class Ledger:
    """Messages and bytes by purpose: what the method sends, what its adaptation sends, what certificates cost."""

    rounds: int = 0
    messages: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PURPOSES, 0))
    bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PURPOSES, 0))

    def add(self, purpose: str, messages: int, size: int) -> None:
        self.messages[purpose] += messages
        self.bytes[purpose] += size

    @property
    def total_messages(self) -> int:
        return sum(self.messages.values())

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes.values())

    def __str__(self) -> str:
        rows = [f"{self.rounds} rounds"]
        rows += [f"  {p:12s}{self.messages[p]:>14,} messages {self.bytes[p]:>18,} bytes" for p in PURPOSES]
        return "\n".join(rows)

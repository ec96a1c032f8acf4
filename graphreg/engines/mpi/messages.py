"""Objects between processes: a short header, and the memory of their arrays as it is."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ...terms import Array

Packed = tuple[bytes, list[Array]]


def packed(value: Any) -> Packed:
    """For `send`: raises where the value cannot be sent, before anybody waits for it."""
    buffers: list[pickle.PickleBuffer] = []
    header = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return header, [np.frombuffer(each.raw(), dtype=np.uint8) for each in buffers]


def send(comm: Any, value: Packed, to: int) -> None:
    header, raw = value
    comm.send((header, [each.size for each in raw]), to)
    for each in raw:
        comm.Send(each, to)


def receive(comm: Any, sender: int) -> Any:
    header, sizes = comm.recv(source=sender)
    buffers = [np.empty(size, dtype=np.uint8) for size in sizes]
    for each in buffers:
        comm.Recv(each, source=sender)
    return pickle.loads(header, buffers=buffers)

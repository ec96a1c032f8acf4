"""Finished points of a path in a file, so that the same call goes on where it was broken off, with the same bits."""

from __future__ import annotations

import time
from typing import Any

from ..certificate import Certificate
from ..errors import CheckpointError
from ..form import DualPoint
from ..methods import _archive, _fingerprint
from ..methods._packing import Packer, Unpacker
from ..methods.checkpoint import Checkpoint
from ..problem import Problem
from ..solution import Solution
from ..terms.calculus import Parameter
from ..terms.records import Array
from ._warm import Warm

FORMAT, VERSION = "graphreg path", 2
OF_SOLUTION = ("status", "message", "method", "rounds", "seconds", "seed")
OF_CERTIFICATE = ("primal", "dual", "charge", "scope", "w", "note", "rounding")


class Kept:
    """The file of one path. Traces and ledgers are not kept: a point that was read has empty ones."""

    def __init__(self, checkpoint: Checkpoint, problem: Problem, parameter: Parameter, warm: Warm, asked: Any) -> None:
        self.checkpoint, self.problem, self.parameter, self.warm = checkpoint, problem, parameter, warm
        parameter.value = 1.0  # so that the value of the moment does not count
        self.header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "problem": _fingerprint.of_problem(problem.form),
            "method": _fingerprint.of_method(warm.method),
            "asked": {key: _fingerprint.entry(value) for key, value in asked.items()},
        }
        self.points: list[dict[str, Any]] = []
        self.when = time.perf_counter()
        self.stale = False

    # ---- reading -----------------------------------------------------------------------------------------------------
    def load(self) -> dict[float, Solution]:
        """The finished points by strength; the warm solver goes on from them."""
        path = self.checkpoint.file
        if path.is_dir() or not path.parent.is_dir():
            raise CheckpointError(f"the checkpoint {str(path)!r} must name a file in a folder that exists")
        if not path.exists():
            return {}
        header, arrays = _archive.read(path)
        self._check(header)
        known: dict[float, Solution] = {}
        try:
            content = self._unpacked(header, list(arrays.values()))
            self.points = content["points"]
            for point in self.points:
                known[point["strength"]] = self._solution(point)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise CheckpointError(
                f"the checkpoint {str(path)!r} cannot be read ({error}); remove it to begin anew"
            ) from error
        for strength, solution in known.items():
            self.warm.learn(strength, solution)
        self.warm.carried.state, self.warm.carried.schedule = content["state"], content["schedule"]
        self.warm.between = {each["strength"]: each["at"] for each in content["between"]}
        return known

    def _check(self, header: dict[str, Any]) -> None:
        name = repr(str(self.checkpoint.file))
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise CheckpointError(f"{name} is no checkpoint of a path of this version; name another file for it")
        for what in ("method", "problem", "asked"):
            found = _fingerprint.differences(self.header[what], header[what])
            if found:
                of = "a path with other choices" if what == "asked" else f"another {what}"
                raise CheckpointError(
                    f"the checkpoint {name} is of {of}; what differs: {', '.join(found)}; name another file, or remove "
                    "this one to begin anew",
                    tuple(found),
                )

    def _unpacked(self, header: dict[str, Any], arrays: list[Array]) -> dict[str, Any]:
        """With the site of the last point, on which the state stood."""
        self.parameter.value = float(header["last"])
        site = self.warm.site()
        self.warm.carried.site = site
        return Unpacker(arrays, header["generators"], site).unpack(header["tree"])

    def _solution(self, point: dict[str, Any]) -> Solution:
        self.parameter.value = point["strength"]
        form, own = self.problem.form.frozen(), point["certificate"]
        dual = DualPoint(point["flows"], point["prices"])
        return Solution(form, Certificate(point=dual, form=form, **own), **point["solution"])

    # ---- writing -----------------------------------------------------------------------------------------------------
    def keep(self, strength: float, solution: Solution) -> None:
        """Note a finished point; written when it is due."""
        certificate = solution.certificate
        self.points.append(
            {
                "strength": strength,
                "solution": {name: getattr(solution, name) for name in OF_SOLUTION},
                "certificate": {name: getattr(certificate, name) for name in OF_CERTIFICATE},
                "flows": certificate.point.flows,
                "prices": certificate.point.prices,
            }
        )
        self.stale = True
        every, seconds = self.checkpoint.rounds, self.checkpoint.seconds
        late = seconds is not None and time.perf_counter() - self.when >= seconds
        if len(self.points) == 1 or late or (every is not None and len(self.points) % every == 0):
            self.write()

    def write(self) -> None:
        """All finished points to the file, where they are not there yet."""
        if not self.stale:
            return
        packer = Packer()
        carried = self.warm.carried
        between = [{"strength": strength, "at": at} for strength, at in self.warm.between.items()]
        content = {"points": self.points, "state": carried.state, "schedule": carried.schedule, "between": between}
        tree = packer.pack(content, "path")
        arrays = {f"a{k}": array for k, array in enumerate(packer.arrays)}
        header = {**self.header, "tree": tree, "generators": packer.generators, "last": self.points[-1]["strength"]}
        _archive.write(self.checkpoint.file, header, arrays)
        self.when, self.stale = time.perf_counter(), False

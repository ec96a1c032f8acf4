"""Declaring a claim: one decorated function, in a file of the folder of its paper."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules
from types import FunctionType, ModuleType
from typing import Any

import graphreg as gr
from graphreg.errors import ModelError

from .records import Evidence, Verdict

Function = Callable[..., Evidence]
SCALES = ("quick", "full")
SAID = {"correction": Verdict.CORRECTED, "part": Verdict.PART, "reason": Verdict.UNCHECKED}  # beside other verdicts
WEIGHTS = ("misprint", "constant", "substance")  # of corrections
NUMBERS = ("clarabel", "cvxpy", "numpy", "scipy")  # packages
ID = re.compile(r"[a-z]+\.[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Declaration:
    """A claim as it is declared; see `claim`."""

    id: str
    source: str
    statement: str
    stated: Any
    expected: Verdict
    correction: str = ""
    weight: str = ""
    part: str = ""
    reason: str = ""
    quick: Mapping[str, Any] = field(default_factory=dict[str, Any])
    full: Mapping[str, Any] | None = None
    data: tuple[str, ...] = ()
    stand_in: str = ""
    extras: tuple[str, ...] = ()
    perturbation: float = 1e-3
    experiment: bool = False
    minutes: float = 1.0
    figure: Callable[[Any, dict[str, Any]], None] | None = None
    function: Function | None = None

    def __post_init__(self) -> None:
        if not ID.fullmatch(self.id):
            raise ModelError(f"the id of a claim is PAPER.NAME, of letters, digits, dots and hyphens, got {self.id!r}")
        for what, verdict in SAID.items():
            given = getattr(self, what)
            if bool(given) != (self.expected == verdict):
                lacks = "lacks" if not given else "is expected to be another, but has"
                raise ModelError(f"{self.id}: a claim that {verdict} has a {what}; this one {lacks} it")
        if self.weight not in (WEIGHTS if self.correction else ("",)):
            raise ModelError(f"{self.id}: a correction, and nothing else, has a weight: {', '.join(WEIGHTS)}")

    @property
    def paper(self) -> str:
        return self.id.partition(".")[0]

    @property
    def seed(self) -> int:
        """Of the claim's random numbers: it follows from the id alone."""
        return int.from_bytes(sha256(self.id.encode()).digest()[:4])

    def settings(self, scale: str) -> dict[str, Any]:
        """The settings of a scale; those of "quick" are for both where there are no others."""
        return dict(self.quick if scale == "quick" or self.full is None else self.full)

    @property
    def code(self) -> str:
        """The version of the code: a hash of its files, and of the `library`."""
        assert self.function is not None
        module = sys.modules[self.function.__module__]
        try:
            texts = sorted(inspect.getsource(each) for each in _files(module, {}).values())
        except (OSError, TypeError):
            raise ModelError(
                f"{self.id}: its code is in no file, so that no result can be kept; write it in a file"
            ) from None
        places = Path(gr.__file__).parent, Path(__file__).parent
        return sha256("\0".join([library(*places), *texts]).encode()).hexdigest()[:16]


def _files(module: ModuleType, found: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """A file of a paper, and the files of the same paper of which it uses something."""
    found[module.__name__] = module
    for each in vars(module).values():
        name = each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)
        if isinstance(name, str) and name not in found and name.startswith(f"{module.__package__}."):
            _files(sys.modules[name], found)
    return found


@lru_cache
def library(package: Path, papers: Path) -> str:
    """A hash of every file of the package, of the files that all papers share, and of the packages that numbers come
    from."""
    found = sha256(" ".join(f"{name} {version(name)}" for name in NUMBERS).encode())
    for folder, pattern in ((package, "**/*.py"), (papers, "*.py")):
        for each in sorted(folder.glob(pattern)):
            found.update(f"\0{each.relative_to(folder).as_posix()}\0".encode() + each.read_bytes())
    return found.hexdigest()


_DECLARED: dict[str, tuple[Declaration, str]] = {}  # with the name of the file


def claim(id: str, source: str, *, stated: Any = "equal", **declared: Any) -> Callable[[Function], Declaration]:
    """Declare a claim, whose function computes it: ``function(at, **settings)`` with the `Trial`, returns `Evidence`.

    The function's docstring is the claim in words: one plain sentence with the formula, and after an empty line, where
    there is one, what is said beside the verdict that is expected:

    - "Correction (WEIGHT): ", the sentence that says it, where the claim holds with a correction. Its weight is
      "misprint", "constant" or "substance": a slip that leaves no doubt of what is meant; a factor or a number; or what
      the claim says;
    - "Part: ", which part holds, and what becomes of the rest;
    - "Reason: ", why the claim cannot be checked, though numbers can be computed, which decide nothing.

    What the decorator leaves is the `Declaration`, which a `Runner` runs. Claims in the folders of the papers are found
    by their ids; those that are written elsewhere are not.

    Parameters
    ----------
    id : str
        PAPER.NAME; the paper is the folder in which the function stands.
    source : str
        Where in the paper.
    stated : str or number, optional
        As printed; by default that the two sides are equal.
    expected : Verdict, optional
        What is to be found. By default it follows from what is said: with a correction, a part or a reason it is that
        verdict, and without one that the claim holds. Any other than this is an unexplained deviation.
    quick, full : dict, optional
        The settings at either scale, arguments of the function; without ``full`` those of ``quick`` are for both.
    data : tuple of str, optional
        Files of real data, which `Trial.file` finds. Where one is not there the claim cannot be checked, unless
        ``stand_in`` says in words what the function takes in their place.
    extras : tuple of str, optional
        Modules that must be installed; without them the claim cannot be checked.
    perturbation : float, optional
        How much `Trial.given` changes an input where a test tampers with it; relative, 1e-3 by default.
    experiment : bool, optional
        Whether it takes seconds, so that the tests leave it out by default.
    minutes : float, optional
        About how many minutes it takes at full scale on one core, for the estimate of the time left; 1 by default.
    figure : callable, optional
        ``figure(figure, data)`` draws on a matplotlib Figure what `Evidence` holds as data.
    """

    def declare(function: Function) -> Declaration:
        words = _words(id, inspect.getdoc(function) or "")
        expected = next((verdict for what, verdict in SAID.items() if what in words), Verdict.HOLDS)
        fields: dict[str, Any] = {"source": source, "stated": stated, "expected": expected, **words, **declared}
        made = Declaration(id, function=function, **fields)
        if function.__module__.startswith(f"{__package__}."):
            _register(made, function.__module__)
        return made

    return declare


def _words(id: str, docstring: str) -> dict[str, str]:
    """The statement of a claim, and what is said beside it, by name."""
    statement, *beside = (" ".join(each.split()) for each in docstring.split("\n\n"))
    words = {"statement": statement}
    for paragraph in beside:
        found = re.fullmatch(r"(Correction|Part|Reason)(?: \((\w+)\))?: (.+)", paragraph)
        if found is None:
            raise ModelError(
                f"{id}: below the statement a docstring says 'Correction (WEIGHT): ...', 'Part: ...' or 'Reason: ...', "
                f"got {paragraph[:40]!r}"
            )
        words |= {found[1].lower(): found[3]} | ({"weight": found[2]} if found[2] else {})
    if not statement:
        raise ModelError(f"{id}: the docstring of a claim's function says what is claimed; this one has none")
    return words


def uncheckable(id: str, source: str, statement: str, *, stated: Any, reason: str) -> None:
    """Declare a claim that nothing can be computed of, with the reason; in a file of its paper."""
    made = Declaration(id, source, statement, stated, Verdict.UNCHECKED, reason=reason)
    _register(made, f"{__package__}.{made.paper}.")


def _register(declared: Declaration, module: str) -> None:
    """Put a claim among those that are found by their ids; ``module`` declares it, in the folder of a paper."""
    folder, _, file = module.removeprefix(f"{__package__}.").partition(".")
    if folder != declared.paper:
        raise ModelError(f"{declared.id} stands in the folder of {folder}; its id begins with the name of its folder")
    before, _ = _DECLARED.get(declared.id, (None, ""))
    if before is not None and _name(before.function) != _name(declared.function):
        raise ModelError(f"{declared.id} is declared twice; give one of the two another id")
    _DECLARED[declared.id] = declared, file


def _name(function: Function | None) -> Any:
    return (function.__module__, function.__qualname__) if isinstance(function, FunctionType) else None


# ---- what there is ---------------------------------------------------------------------------------------------------
def titles() -> dict[str, str]:
    """The papers, and their titles: the first line of the docstring of the paper's folder."""
    package = import_module(__package__ or "")
    names = sorted(each.name for each in iter_modules(package.__path__) if each.ispkg)
    modules = {name: import_module(f"{__package__}.{name}") for name in names}
    return {name: (module.__doc__ or "").split("\n")[0] for name, module in modules.items()}


def declarations() -> dict[str, Declaration]:
    """All claims by id, paper by paper, file by file in the ``ORDER`` that the paper's folder gives; new files last."""
    places: dict[str, tuple[int, ...]] = {}
    for number, paper in enumerate(titles()):
        module = import_module(f"{__package__}.{paper}")
        for name in sorted(each.name for each in iter_modules(module.__path__) if not each.name.startswith("_")):
            import_module(f"{module.__name__}.{name}")
        order = getattr(module, "ORDER", ())
        for id, (each, file) in _DECLARED.items():
            if each.paper == paper:
                places[id] = number, order.index(file) if file in order else len(order)
    return {id: _DECLARED[id][0] for id in sorted(places, key=places.__getitem__)}


def chosen(*names: str) -> dict[str, Declaration]:
    """The claims of some papers ("clusters") and those of some ids ("clusters.prop2.2"); all where none is named.

    Raises
    ------
    ModelError
        For a name that there is not; the message says which was probably meant.
    """
    known, papers = declarations(), titles()
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"the name of a paper or the id of a claim is a text, got {name!r}")
        what, there = ("claim", list(known)) if "." in name else ("paper", list(papers))
        if name not in there:
            near = get_close_matches(name, there, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, there[:9]))}"
            raise ModelError(f"there is no {what} {name!r}; {meant}")
    return {id: each for id, each in known.items() if not names or each.paper in names or id in names}

"""Where modules were: an old path is another name of the module, for imports and for what was pickled."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

TOP, HERE = __name__.partition(".")[0], Path(__file__).parent
FOLDERS = {  # a folder as it was, and where its modules are now; the first stands for a folder that is gone
    "": ("inputs", "form", "certificate.edges", "running", "terms"),
    "lowering": ("oracles", "network", "compiling", "certificate.common_model", "methods.interior_point"),
    "certificate": tuple(f"certificate.{name}" for name in ("common_model", "attainment", "edges", "repairing")),
    "engines": ("network",),
    "methods": (
        *("methods", "running", "running.checkpoints", "network"),
        *(f"methods.{name}" for name in ("splitting", "baselines", "consensus", "known_clusters", "fed_admm")),
    ),
    "explain": ("plots", "form.notation"),
    "theory": ("theory", *(f"theory.{name}" for name in ("agreement", "recovering", "estimation", "spectra"))),
    "inference": ("inference", *(f"inference.{name}" for name in ("edges", "regions", "mixed_models"))),
    "terms.losses": ("terms.losses",),
    "terms.penalties": ("terms.penalties",),
}
NAMES = {  # what a module is called now
    "region": "dual_region",
    "ground": "node_penalties",
    "tied": "price_groups",
    "apart": "cluster_radius",
    "scales": "clusters",
    "signs": "sign_bound",
    "failing": "missing_estimates",
    "remarks": "region_assumptions",
    "assumed": "assumptions",
    "reading": "arguments",
    "asked": "guarantee",
    "passes": "sample_order",
    "kept": "stored",
    "carried": "budget",
    "task": "budget",
    "tie": "consensus_flows",
    "odds": "probabilities",
    "mail": "mailbox",
    "post": "endpoint",
    "troupe": "coordinator",
    "batches": "padding",
    "site": "view",
    "star": "server_topology",
    "steepest": "steepness",
    "plots": "graphs",
}


def now(path: str) -> str | None:
    """Where the module is that was at a path; None for what is there still, and for what never was."""
    old = path.removeprefix(f"{TOP}.")
    folder, _, name = old.rpartition(".")
    if path == old or not {old, folder} & FOLDERS.keys() or _exists(old):
        return None
    bare = name.lstrip("_")
    names = (bare, NAMES.get(bare, bare))
    places = FOLDERS[old][:1] if old in FOLDERS else [f"{each}.{one}" for each in FOLDERS[folder] for one in names]
    return next((f"{TOP}.{each}" for each in places if _exists(each)), None)


def _exists(name: str) -> bool:
    path = HERE.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


class Moved(MetaPathFinder, Loader):
    """Finds modules where they were. It comes first, or a module would be loaded once more under its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = now(fullname)
        return None if new is None else ModuleSpec(fullname, self, origin=new)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        module = import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run, under its own name, which it keeps."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Let old paths be found."""
    sys.meta_path.insert(0, Moved())

"""Old paths of modules, in imports and in what was pickled."""

from __future__ import annotations

import pickle
from importlib import import_module
from pathlib import Path

import pytest

import graphreg as gr
from graphreg.moved import FOLDERS, NAMES, now

OLD = [  # module and name as users could import them, and the same name now
    ("graphreg.graph", "Graph", gr.Graph),
    ("graphreg.data", "NodeData", gr.NodeData),
    ("graphreg.form", "Form", "graphreg.form"),
    ("graphreg.solution", "Solution", gr.Solution),
    ("graphreg.engines", "Actors", gr.Actors),
    ("graphreg.engines", "InProcess", "graphreg.network"),
    ("graphreg.engines.in_process", "InProcess", "graphreg.network"),
    ("graphreg.engines.actors.faults", "Faults", gr.Faults),
    ("graphreg.explain", "plot_graph", "graphreg.plots"),
    ("graphreg.explain", "kkt", "graphreg.form.notation"),
    ("graphreg.explain.text", "Written", "graphreg.form.notation"),
    ("graphreg.lowering.gradients", "NodeGradients", "graphreg.oracles"),
    ("graphreg.lowering.conic", "Compiler", "graphreg.compiling"),
    ("graphreg.lowering.arcs", "arcs_of", "graphreg.network"),
    ("graphreg.batches", "Batch", "graphreg.terms"),
    ("graphreg.certificate.near", "upper_gap", "graphreg.certificate"),
    ("graphreg.methods", "AbstractIteration", gr.AbstractIteration),
    ("graphreg.methods._base", "AbstractIteration", gr.AbstractIteration),
    ("graphreg.methods", "Checkpoint", gr.Checkpoint),
    ("graphreg.methods.checkpoint", "Checkpoint", gr.Checkpoint),
    ("graphreg.methods.availability", "Availability", gr.Availability),
    ("graphreg.methods.exact", "Exact", gr.Exact),
    ("graphreg.methods.admm", "ADMM", gr.ADMM),
    ("graphreg.methods.primal_dual", "PrimalDual", gr.PrimalDual),
    ("graphreg.methods.fed_admm", "FedADMM", gr.FedADMM),
    ("graphreg.methods.async_l2gd", "AsyncL2GD", gr.AsyncL2GD),
    ("graphreg.methods.local_sgd", "LocalSGD", gr.LocalSGD),
    ("graphreg.methods.ifca", "IFCA", gr.IFCA),
    ("graphreg.methods.interior_point", "InteriorPoint", gr.InteriorPoint),
    ("graphreg.terms.losses._base", "AbstractLoss", "graphreg.terms.losses.base"),
    ("graphreg.terms.penalties._base", "AbstractPenalty", gr.Penalty),
    ("graphreg.terms.penalties", "L1", gr.L1),
    ("graphreg.theory.strength", "strength_max", gr.strength_max),
    ("graphreg.theory.guarantee", "recovery", "graphreg.theory"),
    ("graphreg.theory", "error_bound", "graphreg.theory.estimation.bounds"),
    ("graphreg.inference.mixed", "HierarchicalEstimate", "graphreg.inference"),
    ("graphreg.inference.edges", "edge_tests", "graphreg.inference"),
    ("graphreg.inference.regions", "ConfidenceRegion", "graphreg.inference"),
    ("graphreg.testing", "check_method", "graphreg.testing"),
    ("graphreg.datasets", "random_problem", "graphreg.datasets"),
]


@pytest.mark.parametrize(("module", "name", "here"), OLD, ids=lambda x: x if isinstance(x, str) else "")
def test_old_paths_lead_to_the_same_object(module, name, here):
    expected = getattr(import_module(here), name) if isinstance(here, str) else here
    assert getattr(import_module(module), name) is expected


def test_a_module_is_loaded_once_and_keeps_its_name():
    old, new = (import_module(f"graphreg.{name}") for name in ("lowering.arcs", "network.arcs"))
    assert old is new
    assert new.__spec__.name == new.__name__ == "graphreg.network.arcs"


def test_pickles_from_before():
    before = pickle.dumps(gr.ADMM(), protocol=0).replace(b"methods.splitting.admm", b"methods.admm")
    assert b"splitting" not in before
    assert pickle.loads(before) == gr.ADMM()


@pytest.mark.parametrize("name", ["lowering.nothing", "nothing", "methods.nothing", "explain.plots.nothing"])
def test_what_never_was_is_not_found(name):
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
        import_module(f"graphreg.{name}")


def test_the_table_names_folders_that_exist():
    folder = Path(gr.__file__).parent
    assert all((folder.joinpath(*each.split("."))).is_dir() for places in FOLDERS.values() for each in places)
    assert all(any(folder.rglob(f"*{name}.py")) for name in NAMES.values() if name != "view")
    assert now("graphreg.lowering.site") == "graphreg.network.view"
    assert now("graphreg.network.arcs") is None
    assert now("numpy") is None

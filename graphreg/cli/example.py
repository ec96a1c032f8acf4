"""What a user begins with: a complete small example with a tour of it, and files with terms of one's own to change."""

from __future__ import annotations

import keyword
import re
import tempfile
from collections.abc import Iterator
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np

import graphreg as gr

from ..base.escaping import printed, visible
from ..errors import ModelFileError
from . import exits
from .program import FOLDER, main

STATIONS, SAMPLES = 10, 8
ASSETS = resources.files("graphreg.cli") / "assets"
MODEL = (ASSETS / "model.toml").read_text(encoding="utf-8")


def files() -> dict[str, bytes]:
    """The example by file name. The last station has no samples: it takes its neighbour's answer."""
    rng = np.random.default_rng(0)
    station = np.repeat(np.arange(STATIONS), SAMPLES)
    rain, temp = rng.normal(size=(2, len(station)))
    level = np.where(station < STATIONS // 2, 1.0, -1.0) * rain + 0.5 * temp + 0.5 * rng.normal(size=len(station))
    days = rng.integers(1, 4, len(station))  # over which a sample is averaged
    columns = (station.tolist(), rain.tolist(), temp.tolist(), days.tolist(), level.tolist())
    rows = [
        f"km{s},{'upper' if s < STATIONS // 2 else 'lower'},{a:.3f},{b:.3f},{m},{y:.3f}"
        for s, a, b, m, y in zip(*columns, strict=True)
    ]
    edges = [f"km{k},km{k + 1},{1 + (k % 2)}" for k in range(STATIONS)]
    return {
        "stations.csv": "\n".join(["station,reach,rain,temp,days,level", *rows, ""]).encode(),
        "river.csv": "\n".join(["upstream,downstream,width", *edges, ""]).encode(),
        "model.toml": MODEL.encode(),
    }


def write(folder: Path) -> list[str]:
    """Write the example into a folder, which is made; files that are there already are refused."""
    from . import folder as folders

    contents = files()
    if present := [name for name in contents if (folder / name).exists()]:
        raise ModelFileError(f"{folder / present[0]} exists; name another folder")
    folders.make_folder(folder)
    folders.write_all(folder, contents)
    return list(contents)


def tour() -> Iterator[tuple[str, str]]:
    """Headings and texts."""
    from ..model_file import read_model

    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
        model = read_model(Path(name) / "model.toml")
        yield "A model file", MODEL
        yield "What was read", str(model)
        yield "The problem, as the sum it is", str(model.problem)
        yield (
            "Its dual: flows and prices that are conserved and within capacity bound the optimum from below",
            str(model.problem.dual()),
        )
        exact = model.problem.solve(gr.Exact(), progress=False)
        yield "Route 1: the exact optimum, compiled to CVXPY and certified by graphreg itself", str(exact)
        run = model.solve(progress=False)
        apart = f"the two answers differ by at most {np.abs(run.coef - exact.coef).max():.1e}"
        yield "Route 2: messages between neighbours, the same certificate", f"{run}\n{run.ledger}\n{apart}"
        yield "All methods that apply", str(gr.compare(model.problem, seconds=2))
        yield (
            "Coefficients by station: those of one cluster are equal, and km10 has no samples",
            printed(run.table().round(3)),
        )
        members = "\n".join("  " + ", ".join(map(visible, each)) for each in run.clusters().members())
        yield "Clusters, decided from the certificate", f"{run.clusters()}\n{members}"


# ---- commands
@main.command(short_help="Write a small example: a model file and its tables.")
@click.argument("folder", type=FOLDER, required=False)
def example(folder: Path | None) -> None:
    """Write a complete small example into FOLDER: a model file and its two tables.

    Without FOLDER the model file alone is printed.
    """
    if folder is None:
        click.echo(MODEL, nl=False)
        return
    names = write(folder)
    exits.say(f"written to {folder}: {', '.join(names)}\nnow: graphreg solve {folder / names[-1]}")


@main.command(short_help="A tour of the example, from its model file to clusters.")
def demo() -> None:
    """A tour of the example: the model file, the problem and its dual, both routes, their certificate, clusters."""
    exits.begin()
    for heading, text in tour():
        exits.say(f"\n== {heading} ==\n\n{text.rstrip()}")


# ---- a penalty or a loss of one's own, in a file that obeys the laws as it stands, to be changed
@main.command(short_help="Write a penalty or a loss of your own to begin with.")
@click.argument("kind", type=click.Choice(["penalty", "loss"]))
@click.argument("name")
def new(kind: str, name: str) -> None:
    """Write a penalty or a loss of your own to begin with: one file with the class NAME, which obeys every law.

    Change its methods, and run the file: it checks them, and solves a small problem by two routes.
    """
    path = write_term(kind, name, Path.cwd())
    exits.say(f"written: {path.name}\nnow: python {path.name}, or graphreg check {kind} {path.stem}:{name}")


def write_term(kind: str, name: str, folder: Path) -> Path:
    """Write the template of a kind for a class of that name; a name or a file that is there already is refused."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name[0].isupper():
        raise ModelFileError(
            f"{name!r} is no name of a class: write it like SoftL1, letters and digits, a capital first"
        )
    path = folder / f"{_module(name)}.py"
    if hidden := _hidden(name, path):
        raise ModelFileError(f"{hidden}; choose another name, such as My{name}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write((ASSETS / f"{kind}.txt").read_text(encoding="utf-8").replace("NAME", name))
    except FileExistsError:
        raise ModelFileError(f"{path} exists; choose another name, or remove it") from None
    except OSError as error:
        raise ModelFileError(f"{path} could not be written: {error.strerror or error}") from error
    return path


def _module(name: str) -> str:
    """The file of a class: soft_l1 of SoftL1."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _hidden(name: str, path: Path) -> str:
    """The sentence that names what a class of that name would hide: a class of graphreg, or a module that its file is
    called like; empty where it hides nothing."""
    if hasattr(gr, name):
        return f"{name} is there already, as graphreg.{name}, and would be meant wherever {name} is written"
    if not path.exists() and find_spec(path.stem) is not None:
        return f"{path.name} would hide the module {path.stem}, which is installed"
    return ""

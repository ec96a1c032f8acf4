"""What is released says the truth of itself: licences, dependencies, links, one version."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from importlib import metadata
from urllib.parse import urlsplit

import pytest
from places import DOCS, README, ROOT

import graphreg as gr

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
TOOLS = {"bench", "dev", "docs", "release", "test"}  # extras that no user of the package needs
ROWS = re.findall(
    r"^\| `([\w-]+)` \| (.+?) \| .+? \| (.+?) \|$", (DOCS / "licences.md").read_text(encoding="utf-8"), re.M
)


def names(requirements):
    """The packages that lines of pyproject.toml ask for, without those that are extras of graphreg itself."""
    found = {re.match(r"[\w-]+", line)[0] for line in requirements}
    return found - {"graphreg"}


def licence(name):
    """What a package's metadata say of its licence, without the texts of those that its wheel carries."""
    about = metadata.metadata(name)
    classified = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    return " ".join([about.get("License-Expression", ""), *about.get("License", "").splitlines()[:1], *classified])


def permissive(name):
    return not re.search(r"(?<!\w)[AL]?GPL|GNU|Affero", licence(name))


def test_every_dependency_has_its_line():
    asked = {name: {"all"} for name in names(PROJECT["project"]["dependencies"])}
    for extra, lines in EXTRAS.items():
        for name in names(lines):
            asked.setdefault(name, set()).add(extra)
    listed = {name: set(re.findall(r"[\w-]+", by)) for name, by, _ in ROWS}
    assert len(listed) == len(ROWS)
    assert listed.keys() == asked.keys()
    for name, by in listed.items():
        assert by <= asked[name], name
        missing = asked[name] - by - TOOLS
        assert "all" in by or not missing, f"{name} is needed by {missing}, too"


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, _, said in ROWS])
def test_licences_are_those_of_the_packages(name, said):
    try:
        found = licence(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if not found.strip():
        pytest.skip(f"{name} does not say")
    family = re.match(r"[A-Z]+(?=\W|$)|Apache", said)[0]
    spelled = {"PSF": "Python Software Foundation", "BSD": "BSD|OpenMPI"}.get(family, family)
    assert re.search(spelled, found), found


def test_what_an_installation_brings_is_permissive():
    """The dependencies, and theirs, without extras; igraph shows that a GPL would be seen."""
    todo, seen = [*names(PROJECT["project"]["dependencies"])], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        assert permissive(name), f"{name}: {licence(name)}"
        lines = [line for line in metadata.requires(name) or () if ";" not in line]
        todo += [re.match(r"[\w.-]+", line)[0].lower() for line in lines]
    assert {"scs", "highspy", "python-dateutil"} <= seen
    with suppress(metadata.PackageNotFoundError):
        assert not permissive("igraph")


def test_the_version_is_said_once():
    assert PROJECT["project"]["dynamic"] == ["version", "readme"]
    assert "version" not in PROJECT["project"]
    assert re.search(rf"^## {re.escape(gr.__version__)}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)


def test_links_of_the_index_lead_to_files():
    """The readme of the package index has no link that a folder is needed for, and none to a file that is not there."""
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = README.read_text(encoding="utf-8")
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"].replace("$HFPR_VERSION", "1"), text)
    home = PROJECT["project"]["urls"]["Repository"]
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 15
    for link in links:
        assert re.match(r"https://|#", link), link
        own = re.search(r"/v1/([^#]+)", link)
        assert (own is None) == (urlsplit(home).path not in link), link
        assert own is None or (ROOT / own[1]).exists(), link
    assert any(link.endswith(".png") for link in links)


def test_pages_of_the_repository_are_there():
    for name in ("CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "CHANGELOG.md", "LICENSE"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (ROOT / link).exists(), f"{name}: {link}"

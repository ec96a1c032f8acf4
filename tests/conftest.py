"""The settings of pytest that all tests share: ``--whole`` and ``--slow``, figures without a screen, seeds, Ctrl-C.

Sweeps are thinned (`factories.thinned`), and the slowest tests are left out where all are run (`slow`), so that they
take minutes; ``make test ARGS=--whole`` goes through all of each, which takes many times as long.
"""

from __future__ import annotations

import gc
import os
import random
import secrets
import signal
import sys
import warnings

import pytest
from slow import is_run

from graphreg.base import clock, compiled
from graphreg.errors import MethodWarning

# Where shells start tests in the background they ignore Ctrl-C, and so would all that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Code is compiled as soon as it is of use, so that no test depends on those before it.
compiled.EARLY = compiled.Code.loaded = True
os.environ["GRAPHREG_COMPILE"] = "early"


# Thousands of tests are objects that stay: the garbage collector need not go through them again and again.
gc.disable()


def pytest_collection_finish(session):
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make many small objects, and hardly one that waits for the collector


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="the sweeps in whole, not the part that is run by default")
    parser.addoption("--slow", action="store_true", help="the tests alone that take long, left out where all are run")


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if is_run(item, config)]
    config.hook.pytest_deselected(items=[item for item in items if not is_run(item, config)])
    items[:] = kept


@pytest.fixture(autouse=True)
def seeded(request):
    """Runs without a seed draw one: each test has its own, the same in every run, so that none is red by chance."""
    with pytest.MonkeyPatch.context() as own:  # that of the test is undone in its own order
        own.setattr(secrets, "randbits", random.Random(request.node.nodeid).getrandbits)
        yield


@pytest.fixture(autouse=True)
def alone():
    """Compiled work that other tests have broken off, and that is still at it, takes no share of last words."""
    with pytest.MonkeyPatch.context() as own:
        own.setattr("graphreg.base.clock.stopped", [])
        yield


@pytest.fixture(autouse=True)
def closed():
    """No figure is left open to the next test."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def unhurried(monkeypatch):
    """Last words take as long as they need, on a machine that is busy too."""
    monkeypatch.setattr(clock, "_from_now", lambda seconds, now=clock._from_now: now(seconds and 100.0 * seconds))


@pytest.fixture
def whole(request):
    """True where a sweep within a test goes through all of its cases."""
    return request.config.getoption("--whole")


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


@pytest.fixture
def quiet():
    """Without what methods warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MethodWarning)
        yield

"""What `make dist` has built, tried as users would: the wheel in an environment of its own, far from the tree.

The quick tests come from the source distribution, whose package is taken away first: they can only meet the wheel's.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "dist"
ALONE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
WHERE = "import graphreg; print(graphreg.__file__); print(graphreg.__version__)"
IMPORT = "import time; t = time.perf_counter(); import graphreg; print(time.perf_counter() - t)"


def only(pattern: str) -> Path:
    found = sorted(BUILT.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"dist has {len(found)} files {pattern}, not one")
    return found[0]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        [str(each) for each in command], cwd=folder, env=ALONE, check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(map(str, command))}: exit status {done.returncode}")
    return done.stdout.strip()


def sizes(wheel: Path, sdist: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        inside = [each.filename for each in file.infolist() if not each.is_dir()]
        unpacked = sum(each.file_size for each in file.infolist())
    foreign = [
        name for name in inside if not name.startswith(("graphreg/", f"{wheel.name.split('-py3')[0]}.dist-info"))
    ]
    if foreign or "graphreg/py.typed" not in inside:
        raise SystemExit(f"{wheel.name} has {foreign[:3]}, or lacks py.typed")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(inside)} files, {unpacked / 1e6:.1f} MB unpacked")
    with tarfile.open(sdist) as archive:
        print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(archive.getnames())} files")


def main() -> None:
    wheel, sdist = only("*.whl"), only("*.tar.gz")
    sizes(wheel, sdist)
    with tempfile.TemporaryDirectory(prefix="graphreg-dist-") as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (tree,) = folder.iterdir()
        shutil.rmtree(tree / "graphreg")
        venv.create(folder / "env", with_pip=True)
        programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        python = programs / "python"
        install = (python, "-m", "pip", "install", "-qq", "--disable-pip-version-check")
        run(*install, wheel, folder=folder)
        place, version = run(python, "-c", WHERE, folder=tree).splitlines()
        if "site-packages" not in Path(place).parts or not Path(place).is_relative_to(folder.resolve()):
            raise SystemExit(f"it is not the wheel that was imported, but {place}")
        seconds = statistics.median(float(run(python, "-c", IMPORT, folder=folder)) for _ in range(5))
        print(f"graphreg {version} in site-packages, without extras; `import graphreg` takes {seconds:.2f} s")
        print(run(programs / "graphreg", "--version", folder=folder))
        run(*install, f"{wheel}[test]", folder=folder)
        quick = run(python, "-m", "pytest", "-m", "quick", "tests/house/test_quick.py", folder=tree)
        again = run(python, "-c", WHERE, folder=tree).splitlines()
        if again != [place, version]:
            raise SystemExit(f"the tests met {again}")
        print(quick.splitlines()[-1].strip(), "(the quick tests, against the wheel)")


if __name__ == "__main__":
    sys.exit(main())

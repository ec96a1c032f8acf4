# Each target builds its own environment in .venv, installs what it needs, and runs.
# Needed beforehand: Python 3.11 or newer, git, make.
#
#   make demo                          a first look
#   make test ARGS="-k certificate"    ARGS go to the program that the target runs
#   make test PYTHON=python3.12        another interpreter (after `make clean`)

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
RUN := $(VENV)/bin/python
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo quick lowest test lint listings counts bench soundness proofs mutants resume failures methods statistics
.PHONY: dist audits rows house papers tutorials pictures docs clean checker checker-proofs checkers

help:
	@echo "make demo        run examples/demo.py"
	@echo "make quick       say in a minute whether the installation is sound"
	@echo "make lowest      the same, and the README, with the lowest version of every package that is allowed"
	@echo "make test        run the tests; with ARGS=--slow those that take long, with ARGS=--whole all of their sweeps"
	@echo "make lint        check style, format and types"
	@echo "make listings    write the tables of docs and the list of types again, from the classes"
	@echo "make tutorials   write what the tutorials print, their pictures, and the lecture's notebook again"
	@echo "make house       say what is true of the package: lines, files, arrows between rooms, what an import loads"
	@echo "make counts      count what the type checker is told to overlook"
	@echo "make bench       measure speed beside other solvers, and show what became slower; or ARGS=table, ARGS=sweep"
	@echo "make soundness   search for a certificate that lies"
	@echo "make mutants     change the checker of proofs, and the kernel of bounds, in a place at a time: what tests do not see is argued"
	@echo "make proofs      prove and check answers, true and false claims, forged and hostile files"
	@echo "make checker     build the checker of proofs that is proved in Coq, with OCaml, and test it"
	@echo "make checker-proofs  prove it again, print what the proof assumes, compare the program with the one that is here"
	@echo "make checkers    ask the three checkers of proofs for true, changed, forged and hostile files, beside each other"
	@echo "make resume      kill runs at random, let them go on, compare bits"
	@echo "make failures    kill, stop and interrupt actors and all else at random, see what is left"
	@echo "make methods     measure how every method converges, beside its theory"
	@echo "make statistics  measure sizes, powers, coverages and times, beside what is promised"
	@echo "make rows        solve models of rows of other programs and users, beside them; with ARGS=--docs, write the page"
	@echo "make papers      compute again what the papers state, and judge it by its numbers"
	@echo "make audits      plant bugs in algorithms, and see whether audits find and name them"
	@echo "make docs        build the documentation as a site in out/site"
	@echo "make pictures    draw the pictures of the documentation again"
	@echo "make dist        build the wheel and the sources, check what the index will show, try the wheel in an environment of its own"
	@echo "make clean       remove environments, caches and build outputs"

demo: $(VENV)/.installed-demo
	$(RUN) examples/demo.py $(ARGS)

# One thread each: numerical libraries that spawn threads of their own only get in each other's way. Three workers keep
# two cores busy, since some tests wait for processes. Each worker begins with its part of the files, so that what the
# tests of a file share is made once; who is done helps out.
quick lowest test: export OMP_NUM_THREADS := 1
quick lowest test: export OPENBLAS_NUM_THREADS := 1
quick lowest test: export MKL_NUM_THREADS := 1
# What is compiled is kept, whatever is usual here: the tests start the library in dozens of processes of their own.
quick lowest test: export PYTHONDONTWRITEBYTECODE :=
quick: $(VENV)/.installed-test
	$(RUN) -m pytest -m quick $$(grep -rl --include='*.py' 'mark\.quick' tests) $(ARGS)
# CVXPY 1.9.0 adds up whatever lies in memory, to know the shape of a sum.
lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -W "ignore:invalid value encountered in reduce:RuntimeWarning" $$(grep -rl --include='*.py' 'mark\.quick' tests) tests/house/test_readme.py $(ARGS)
test: $(VENV)/.compiled
	$(RUN) -m pytest -n 3 --dist worksteal $(ARGS)
# Every worker begins with reading all files of tests, at the same time as the others: they are compiled once, before.
$(VENV)/.compiled: export PYTHONDONTWRITEBYTECODE :=
$(VENV)/.compiled: $(VENV)/.installed-test
	@$(RUN) -m compileall -q graphreg benchmarks papers
	@for some in 'tests/[a-h]*/' 'tests/[i-z]*/'; do $(RUN) -m pytest --collect-only -qq $$some > /dev/null & done; wait
	@touch $@

lint: export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
lint: $(VENV)/.installed-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m pyright

listings: $(VENV)/.installed-test
	$(RUN) tests/listings.py

tutorials: $(VENV)/.installed-test
	$(RUN) tests/tutorials.py $(ARGS)

house: $(VENV)/.installed-test
	$(RUN) tests/survey.py

# The numbers beside the rules that pyproject.toml turns off.
counts: $(VENV)/.installed-dev
	@echo '{"include": ["../graphreg"], "typeCheckingMode": "strict", "pythonVersion": "3.11",' \
	      '"venvPath": "..", "venv": ".venv"}' > $(VENV)/strict.json
	@$(RUN) -m pyright -p $(VENV)/strict.json --outputjson | $(RUN) -c "import collections, json, sys; \
	found = json.load(sys.stdin)['generalDiagnostics']; \
	print(*(f'{n:6d}  {rule}' for rule, n in collections.Counter(d.get('rule') for d in found).most_common()), sep='\n')"

bench: export OMP_NUM_THREADS := 1
bench: export OPENBLAS_NUM_THREADS := 1
bench: export MKL_NUM_THREADS := 1
bench: export NUMBA_NUM_THREADS := 1
bench: $(VENV)/.installed-bench $(VENV)/.tried-rivals
	$(RUN) -m benchmarks $(ARGS)

# Rivals; one that cannot be installed is a row of the table that says so. The first two are built here, for the numpy
# that is installed, and need a compiler.
BUILT := prox_tv pycut-pursuit
RIVALS := $(BUILT) skglm pyproximal
$(VENV)/.tried-rivals: $(VENV)/.installed-bench
	@$(RUN) -m pip install -qq --disable-pip-version-check setuptools
	@for rival in $(RIVALS); do \
	  $(RUN) -m pip install -qq --disable-pip-version-check --no-build-isolation $(BUILT:%=--no-binary %) $$rival \
	    > $(VENV)/$$rival.log 2>&1 || echo "$$rival could not be installed, see $(VENV)/$$rival.log; going on without"; \
	done
	@touch $@

soundness: $(VENV)/.installed-test
	$(RUN) -m benchmarks.soundness $(ARGS)

proofs: export OMP_NUM_THREADS := 1
proofs: export OPENBLAS_NUM_THREADS := 1
proofs: $(VENV)/.installed-test
	$(RUN) -m benchmarks.proofs $(ARGS)

mutants: $(VENV)/.installed-test
	$(RUN) -m benchmarks.mutants $(ARGS)

# OCaml and zarith build it (apt-get install ocaml-nox libzarith-ocaml-dev); Coq is asked for where it is proved anew.
checker:
	@if command -v ocamlopt > /dev/null; then $(MAKE) -s -C checker test; \
	  else echo "OCaml is not here: the proved checker of proofs is not built"; fi

checker-proofs:
	@if command -v coqc > /dev/null; then $(MAKE) -s -C checker proofs; \
	  else echo "Coq is not here: the checker of proofs is not proved anew"; fi

checkers: export OMP_NUM_THREADS := 1
checkers: export OPENBLAS_NUM_THREADS := 1
checkers: checker $(VENV)/.installed-test
	$(RUN) -m benchmarks.checkers $(ARGS)

# One thread, as in the runs that are killed: the last bits of a product depend on the number of threads.
resume: export OMP_NUM_THREADS := 1
resume: export OPENBLAS_NUM_THREADS := 1
resume: export MKL_NUM_THREADS := 1
resume: $(VENV)/.installed-bench
	$(RUN) -m benchmarks.resume $(ARGS)

failures methods statistics audits rows papers: export OMP_NUM_THREADS := 1
failures methods statistics audits rows papers: export OPENBLAS_NUM_THREADS := 1
methods statistics audits rows: $(VENV)/.installed-test
	$(RUN) -m benchmarks.$@ $(ARGS)

failures: $(VENV)/.installed-test
	$(RUN) -m benchmarks.failures $(ARGS)
	$(RUN) -m benchmarks.interrupting

papers: $(VENV)/.installed-test
	$(RUN) -m papers run --processes 2 $(ARGS)

# The pages open from the disk, and their search does: out/site/index.html
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet $(ARGS)

pictures: export OMP_NUM_THREADS := 1
pictures: export OPENBLAS_NUM_THREADS := 1
pictures: $(VENV)/.installed-test
	$(RUN) docs/images/make.py $(ARGS)

dist: $(VENV)/.installed-release
	rm -rf dist
	$(RUN) -m build --outdir dist
	$(RUN) -m twine check --strict dist/*
	$(RUN) tests/dist.py

clean:
	rm -rf $(VENV) $(LOWEST) build dist out papers-out *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- the environment; one stamp per set of extras, renewed when pyproject.toml changes --------------------------------

$(VENV)/.installed-%: pyproject.toml $(VENV)/.created
	@echo "installing graphreg[$*] into $(VENV) (a minute or two the first time)"
	@$(RUN) -m pip install -qq --disable-pip-version-check --editable ".[$*]"
	@touch $@

# What the bounds of pyproject.toml allow, in an environment of its own.
$(LOWEST)/.installed: pyproject.toml tests/lowest.py $(VENV)/.created
	@echo "installing the lowest versions into $(LOWEST) (a minute or two)"
	@$(RUN) -m venv --clear $(LOWEST)
	@$(RUN) tests/lowest.py test fast > $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check --requirement $(LOWEST)/lowest.txt
	@$(LOWEST)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.created:
	@command -v "$(PYTHON)" > /dev/null || \
	  { echo "$(PYTHON) was not found; install Python 3.11 or newer, or name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "graphreg needs Python 3.11 or newer, $(PYTHON) is $$("$(PYTHON)" --version 2>&1);" \
	         "name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || \
	  { echo "$(PYTHON) cannot create environments: its modules venv and ensurepip are missing." \
	         "On Debian and Ubuntu: sudo apt install python3-venv (or python3.12-venv, ... for that version)" >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV)
	@touch $@

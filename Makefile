# Every target sets itself up in a fresh clone. It needs Python 3.11+, make and access to the package registries.
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
SPARK35_VENV := .venv-spark35

.PHONY: help demo test test-spark35 lint types imports audit bench bench-tables bench-spark bench-differences bench-votes docs paper clean

help:
	@echo "make demo    24 generated hospitals: plan, releases in separate processes, clusters, report.html"
	@echo "make test    lint, types, layers, all tests"
	@echo "make test-spark35   the Spark tests on PySpark 3.5 (needs Java 17)"
	@echo "make audit   attacks, exactness, faults and fuzzing at full size; writes docs/audit.md (hours: the part law alone takes two and a half; QUICK=1: a few minutes, no page)"
	@echo "make bench   speed ratios against named peers; writes docs/benchmarks.md (QUICK=1: two minutes, no page)"
	@echo "make bench-tables   time and memory of event tables up to 10^8 rows (ten minutes)"
	@echo "make bench-spark    events per second under Spark, by executors and by events up to 10^8 (fifteen minutes; needs Java)"
	@echo "make bench-differences   which of the true top ten differences are found, beside a noisy histogram (a quarter of an hour; needs ../shared/data; QUICK=1: one repetition, no page)"
	@echo "make bench-votes   power, width and coverage of votes beside version 0.2's cut at C items (twenty minutes; needs ../shared/data; QUICK=1: two minutes, no page)"
	@echo "make docs    generate the reference of all commands and options"
	@echo "make paper   compare the paper's claims with measurements; writes docs/paper.md and docs/figures (ten minutes)"
	@echo "make clean   remove the environments and caches"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.package: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.package
	$(VENV)/bin/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/.audit: pyproject.toml $(VENV)/.package
	$(VENV)/bin/python -m pip install --quiet --group audit
	@touch $@

$(BENCH_VENV)/.bench: pyproject.toml
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable . --group bench
	@touch $@

$(SPARK35_VENV)/.spark35: pyproject.toml
	$(PYTHON) -m venv $(SPARK35_VENV)
	$(SPARK35_VENV)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(SPARK35_VENV)/bin/python -m pip install --quiet --editable . --group spark35
	@touch $@

demo: $(VENV)/.package
	$(VENV)/bin/armslength demo

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.dev
	$(VENV)/bin/mypy

imports: $(VENV)/.dev
	$(VENV)/bin/lint-imports --no-logo

test: lint types imports
	$(VENV)/bin/python -m pytest --numprocesses auto --dist loadscope --no-loadscope-reorder --quiet

test-spark35: $(SPARK35_VENV)/.spark35
	$(SPARK35_VENV)/bin/python -m pytest --quiet -W "ignore:unclosed <socket:ResourceWarning" tests/spark  # Spark 3.5 leaves sockets open

audit: $(VENV)/.audit
	PYTHONPATH=.:examples:tests $(VENV)/bin/python -m audit $(if $(QUICK),--quick) $(PARTS)

bench: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/run.py $(if $(QUICK),--quick)

bench-tables: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/event_tables.py

bench-spark: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/spark_events.py $(if $(QUICK),--quick)

bench-differences: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/what_differs.py $(if $(QUICK),--quick)

bench-votes: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/votes.py $(if $(QUICK),--quick)

paper: $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python benchmarks/reproduce.py

docs: $(VENV)/.package
	$(VENV)/bin/python docs/write_commands.py

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(SPARK35_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

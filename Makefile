# One target per task. Needs Python 3.11 or later and make; everything else is installed.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PACKAGES = contract storage sidecar webhook cache trainer components cli pipelines
# Tests and benchmarks start hundreds of interpreters, each of which would compile podferry's modules.
unexport PYTHONDONTWRITEBYTECODE
# A stamp per extra: setup is skipped until the requirements change.
STAMP = $(VENV)/.installed-
INSTALLED = build/installed
INSTALLED_FROM = .[gcs,hdfs,oss,sftp,smb]
BUILDER ?= docker
IMAGE ?= podferry:0.1.0-python3.12
EXTRAS ?= webhook,kfp,hdfs,oss,sftp
WRITERS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/podferry/writers

.PHONY: help demo examples image test test-programs check test-servers test-writers test-kfp test-cluster e2e e2e-two-nodes faults kills run-kills fetches reviews exits cluster cluster-down bench bench-prefetch bench-epoch bench-checkpoint bench-reviews bench-sources bench-batches bench-cache installed typing clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/\1|\2/' | column -t -s '|'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "podferry needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(STAMP)%: $(BIN)/python setup.py pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

demo: $(STAMP)demo ## run the main job, or the example PIPELINE, on an embedded object store; ends with a report
	$(BIN)/python -m demo $(if $(PIPELINE),--pipeline $(PIPELINE))

examples: $(STAMP)demo $(STAMP)test ## run every example: the pipelines of `make demo PIPELINE=NAME`, and those of the READMEs
	$(BIN)/pytest -m examples --numprocesses auto $(ONLY) tests/demo/test_examples.py tests/components/test_readmes.py

# Importing them takes a fifth of the time that collecting takes; none of them is selected.
OTHER_TESTS = e2e faults servers writers

test: $(STAMP)test ## run the tests of the code
	$(BIN)/pytest $(OTHER_TESTS:%=--ignore=tests/%) --numprocesses auto --dist loadfile $(ONLY)

test-programs: $(STAMP)test ## run the tests that start whole programs, as users do
	$(BIN)/pytest -m programs -o cache_dir=.pytest_cache/programs --numprocesses auto --dist loadfile $(ONLY)

image: ## build the image of the agent, the webhook and the KFP steps: IMAGE, EXTRAS, BUILDER (docker, podman, buildah)
	$(BUILDER) build -f Dockerfile.sidecar --build-arg EXTRAS=$(EXTRAS) -t $(IMAGE) .

typing: # type checkers run no import hooks: give them the namespace as links
	@mkdir -p build/typing/podferry
	@for package in $(PACKAGES); do ln -sfn ../../../$$package build/typing/podferry/$$package; done
	@for module in __init__ __main__; do ln -sf ../../../top_level/$$module.py build/typing/podferry/$$module.py; done

check: $(STAMP)test $(STAMP)check typing ## check format, lint, types, layers and English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p podferry -p demo -p faults
	PYTHONPATH=build/typing $(BIN)/lint-imports
	$(BIN)/python -m tests.support.plain_english

test-servers: $(STAMP)servers ## run what needs real servers, which it installs and starts: the stores, promtool
	$(BIN)/pytest -m servers $(ONLY) tests/servers

test-kfp: $(STAMP)test ## compile the pipelines with the first and the last version of kfp that can
	$(BIN)/pytest -m kfp tests/components/test_kfp_versions.py

test-cluster: $(STAMP)test ## test the harness that starts a real Kubernetes
	$(BIN)/pytest -m cluster tests/cluster

test-writers: $(STAMP)test $(WRITERS)/.installed ## have the real libraries write checkpoints, stopped at every call
	PODFERRY_WRITERS_REQUIRED=1 PODFERRY_WRITERS_PYTHON=$(WRITERS)/bin/python $(BIN)/pytest -n 2 -m writers tests/writers

# In an environment of their own: large, and nothing that podferry needs.
$(WRITERS)/.installed: tests/writers/requirements.txt
	$(PYTHON) -m venv $(WRITERS)
	DS_BUILD_OPS=0 $(WRITERS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

e2e: $(STAMP)servers ## run everything on a real Kubernetes with a real S3 server
	$(BIN)/pytest -m e2e -o cache_dir=.pytest_cache/e2e $(ONLY) tests/e2e

e2e-two-nodes: $(STAMP)servers ## run a cache on a real Kubernetes with two nodes
	$(BIN)/pytest -m two_nodes tests/e2e/test_two_nodes.py

cluster: $(BIN)/python ## start a real Kubernetes unless it is running
	$(BIN)/python -m tests.cluster up

cluster-down: $(BIN)/python ## stop it and remove what it left
	$(BIN)/python -m tests.cluster down

faults: $(STAMP)test ## inject N random faults, starting at seed SEED, into LOG; PROVE=1 checks that failures are detected
	$(BIN)/python -m faults $(if $(PROVE),--prove,--seed $(or $(SEED),1) --n $(or $(N),30)) $(if $(ONLY),--writers $(ONLY)) $(if $(LOG),--log $(LOG))

kills: $(STAMP)test ## kill -9 the worker at N random moments of its uploads; PROVE=1 checks that losses are detected
	$(BIN)/python -m faults.kills $(if $(PROVE),--prove,--seed $(or $(SEED),1) --n $(or $(N),10))

run-kills: $(STAMP)test ## kill -9 each process of `podferry run` in each phase; prints a table
	$(BIN)/python -m faults.run_kills

fetches: $(STAMP)test ## prefetch N times from a store with random faults
	$(BIN)/python -m faults.fetches --seed $(or $(SEED),1) --n $(or $(N),20)

reviews: $(STAMP)test ## send N random pods to the webhook; none may crash it or be changed where it should not
	$(BIN)/python -m faults.reviews --seed $(or $(SEED),1) --n $(or $(N),10000)

exits: $(STAMP)test ## end every verb N times, in every way: none ends by a signal
	EXITS=$(or $(N),200) $(BIN)/pytest tests/cli/test_process_exit.py

bench: bench-prefetch bench-epoch bench-checkpoint bench-reviews bench-sources bench-batches bench-cache ## run the comparisons; SHORT=1 only checks that they run

# Benchmarks time what users install: a wheel in its own environment.
installed: $(BIN)/python
	$(PYTHON) -m venv $(INSTALLED)
	$(INSTALLED)/bin/python -m pip install --quiet --disable-pip-version-check '$(INSTALLED_FROM)'

bench-prefetch: export PODFERRY_PROGRAM = $(abspath $(INSTALLED)/bin/podferry)
bench-prefetch: $(STAMP)bench installed
	$(BIN)/python benchmarks/prefetch.py $(if $(SHORT),--short)
	$(BIN)/python benchmarks/inside.py $(if $(SHORT),--short)

bench-epoch: export PODFERRY_PROGRAM = $(abspath $(INSTALLED)/bin/podferry)
bench-epoch: $(STAMP)bench installed
	$(BIN)/python benchmarks/epoch.py $(if $(SHORT),--short)

bench-checkpoint: $(STAMP)bench
	$(BIN)/python benchmarks/checkpoint.py $(if $(SHORT),--short)

bench-reviews: $(STAMP)bench
	$(BIN)/python benchmarks/reviews.py $(if $(SHORT),--short)

bench-sources: export PODFERRY_PROGRAM = $(abspath $(INSTALLED)/bin/podferry)
bench-sources: $(STAMP)bench $(STAMP)servers installed ## compare every source with its usual tool; SHORT=1 as above
	$(BIN)/python benchmarks/sources.py $(SCHEMES) $(if $(FILES),--files $(FILES)) $(if $(SHORT),--short)

bench-batches: $(STAMP)bench $(STAMP)test ## the time of a batch, from the stage and straight from OSS; SHORT=1 as above
	PYTHONPATH=. $(BIN)/python benchmarks/batches.py $(if $(SHORT),--short)

bench-cache: export PODFERRY_PROGRAM = $(abspath $(INSTALLED)/bin/podferry)
bench-cache: $(STAMP)bench installed ## the node cache: second pods, shared data, FUSE mounts, several holders; SHORT=1 as above
	$(BIN)/python benchmarks/node_cache.py $(if $(SHORT),--short)

clean: ## remove everything that was built
	rm -rf build dist $(VENV) *.egg-info

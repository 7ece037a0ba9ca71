# The commands of a checkout. They need Go 1.26, Node with npm, git and make; `make setup` installs the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Modules with their own go.mod, so that the top one contains only what the programs need.
MODULES := . $(patsubst %/go.mod,%,$(wildcard e2e/go.mod bench/go.mod tools/go.mod))

# Linted like MODULES. Their tests need what `make peers`, `make browser` and `make proof` install.
PEERS := e2e/peers
BROWSER := e2e/browser
PROOF := e2e/proof

# Tools are pinned in tools/go.mod. Go builds them on first use, with the current compiler. golangci-lint includes gofumpt.
TOOL := go tool -modfile='$(CURDIR)/tools/go.mod'
LINT := $(TOOL) golangci-lint

# The pinned CLI comes before any other on the machine, for tests, demo and run.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

# Stamp the version from git, if git accepts the checkout.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

.PHONY: help setup machine build install release site trial-install trial-cold demo guide run bench bench-ingress bench-console bench-workspace bench-environment bench-fleet bench-poll bench-review bench-gateway bench-clouds chaos upgrade image oci trial-oci test check lint \
	fmt vuln mutants peers browser pictures proof groups clean

# A target's comment is `## TIME | TEXT`. Times are for two cores.
help: ## | Show this list
	@awk -F ':.*## *| *[|] *' '/^[a-z-]+:.*## / { printf "  make %-18s %-7s %s\n", $$1, $$2, $$3 }' $(MAKEFILE_LIST)

setup: machine node_modules/.package-lock.json ## 1 min | Install the pinned CLI and the tests' system packages; once

machine:
	@scripts/machine

# npm writes this file last. The CLI's postinstall script puts the native binary in place; it does not run if npm ignores scripts.
node_modules/.package-lock.json: package.json package-lock.json .npmrc
	npm ci --no-progress
	@node_modules/.bin/claude --version || { echo "The CLI does not start. If npm ignores install scripts, allow them for this checkout." >&2; exit 1; }
	@touch $@

build: ## 1 min | Build all programs into bin/; seconds when cached
	scripts/compile -buildvcs=$(VCS) -trimpath -o bin/ ./cmd/...
	cd e2e && ../scripts/compile -buildvcs=$(VCS) -trimpath -o ../bin/ ./demo
	CGO_ENABLED=0 scripts/compile -buildvcs=false -trimpath -ldflags='-s -w' -o bin/ ./agent/cmd/errand-keeper

PREFIX ?= /usr/local
install: build ## 1 min | Install the programs below PREFIX=/usr/local
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin bin/enqueue bin/worker bin/errand-keeper

demo: machine ## 40 s | Show the whole system against fakes, without any account (ARGS=-once ends by itself)
	@$(MAKE) --no-print-directory -j2 setup build
	bin/demo $(ARGS)

trial-cold: ## 3 min | Measure the first `make demo` of a new clone, whose caches are empty
	@scripts/trial-cold

guide: setup build ## | Set errand up step by step, and start it (ARGS=--no-github)
	@bin/enqueue init guide $(ARGS)

run: .env setup build ## | Run the whole system in one process with the settings of .env
	@set -a; . ./.env; set +a; exec bin/worker -standalone $(ARGS)

.env:
	@echo "make run reads its settings from .env, which does not exist. Write it with make guide, or copy .env.example." >&2
	@echo "To look around without an account: make demo" >&2
	@exit 1

check: lint ## 20 min | Check format, vet and lint, and run all tests with the race detector
	@RACE=all $(MAKE) test

test: setup ## 10 min | Run all tests, with the race detector where it finds something (ARGS='-run TestX ./store' selects some)
	@MODULES="$(MODULES)" scripts/test $(ARGS)

# The linter contains the formatter and vet.
lint: ## 1 min | Check format, vet and lint; 3 min more on first use
	@failed=0; for m in $(MODULES) $(PEERS) $(BROWSER) $(PROOF); do echo "== lint $$m"; cd "$(CURDIR)/$$m"; \
		$(LINT) run --allow-parallel-runners || failed=1; done; exit $$failed

fmt: ## 10 s | Format the code
	@for m in $(MODULES) $(PEERS) $(BROWSER) $(PROOF); do cd "$(CURDIR)/$$m"; $(LINT) fmt; done

vuln: ## 1 min | Look for known vulnerabilities in the dependencies (needs the network)
	$(TOOL) govulncheck ./...

peers: setup build $(PEERS)/node_modules/.package-lock.json ## 15 s | Test against other projects' frameworks and libraries, and behind nginx; 1 min more on first use
	@scripts/machine nginx
	cd $(PEERS) && go test -count=1 -timeout 30m $(ARGS) .

$(PEERS)/node_modules/.package-lock.json: $(PEERS)/package.json $(PEERS)/package-lock.json $(PEERS)/.npmrc
	npm ci --prefix $(PEERS) --ignore-scripts --no-progress
	@touch $@

browser: setup build $(BROWSER)/node_modules/.package-lock.json ## 30 s | Check every page of the console in Chromium; pictures go to e2e/out/
	@scripts/machine chromium
	cd $(BROWSER) && go test -count=1 -timeout 30m $(ARGS) .

mutants: setup build ## 50 min | Change the product in 150 small ways, and list those that no test notices (ARGS='-only REGEXP', '-seed N -n N', -list)
	go run -C tools ./mutants $(ARGS)

pictures: ## 1 min | Make the pictures of the documents again
	@$(MAKE) browser ARGS='-run "TestDemo|TestMovingPicture" -pictures'

proof: setup build ## 1 min | Check Dockerfile, chart, alerts and dashboard with their own tools' code; 2 min more on first use
	@scripts/machine prometheus
	cd $(PROOF) && go test -count=1 -timeout 30m . $(ARGS)

$(BROWSER)/node_modules/.package-lock.json: $(BROWSER)/package.json $(BROWSER)/package-lock.json $(BROWSER)/.npmrc
	npm ci --prefix $(BROWSER) --ignore-scripts --no-progress
	@touch $@

groups: setup ## 1 min | Test runs in control groups (version 2), in a kernel of their own (as root)
	@command -v linux.uml >/dev/null || scripts/machine user-mode-linux
	@scripts/groups

image: setup ## 3 min | Build the image without a container engine and test it, and the Compose file's worker in containers (as root)
	@scripts/machine buildah debootstrap runc
	@scripts/image
	go -C e2e test -count=1 -timeout 30m -tags container -run '^(TestContainer|TestDefaults)$$' .

release: ## 3 min | Build archives, Debian packages, SBOMs and checksums into dist/
	@scripts/release

site: ## 10 s | Render README and docs as HTML into dist/site; open dist/site/index.html
	go run -C tools ./site -out "$(CURDIR)/dist/site"

oci: ## 3 min | Build the image for amd64 and arm64 as an OCI layout into dist/oci
	@scripts/machine jq
	@scripts/oci

trial-oci: oci ## 6 min | Check that a second build gives the same bytes, and test the image of this platform (as root)
	@scripts/trial-oci dist/oci

trial-install: release ## 2 min | Install the package in a new Debian system and answer a demo mention there (as root)
	@scripts/machine debootstrap
	@scripts/trial-install dist/errand_*_$$(dpkg --print-architecture).deb

# bin/chaos contains chaos itself and the scripted CLI that replaces the agent.
chaos: build ## 15 min | Break a whole fleet on purpose and check the results (ARGS='-for 3m', '-seed N -tasks N -faults N', -once: 4 min, -takeovers: 1 min)
	go -C e2e build -buildvcs=$(VCS) -trimpath -o '$(CURDIR)/bin/chaos/' ./chaos ./chaos/cli
	bin/chaos/chaos -bin bin -cli bin/chaos/cli -s3 "$$($(TOOL) -n versitygw)" $(ARGS)

upgrade: ## 6 min | Break a fleet whose processes alternate between this version and REVISION, by default the newest tag
	scripts/build-revision bin/other $(REVISION)
	$(MAKE) chaos ARGS='-for 5m -other bin/other $(ARGS)'

bench: bench/node_modules/.package-lock.json build ## 2 min | Measure the runner beside the official SDK (ARGS=-quick for a short look)
	cd bench && CGO_ENABLED=0 go run ./agent -keeper ../bin/errand-keeper $(ARGS)

# Without the CLI that the SDK includes as an optional dependency: the benchmark uses a fake.
bench/node_modules/.package-lock.json: bench/package.json bench/package-lock.json bench/.npmrc
	npm ci --prefix bench --ignore-scripts --omit=optional --no-progress
	@touch $@

bench-ingress: bench/ingress/node_modules/.package-lock.json build ## 13 min | Measure the front door beside a bare handler and Slack's framework
	cd bench && go run ./ingress -bin ../bin $(ARGS)

# `npm ci` would reject a lock file without the optional packages of other platforms (npm/cli#4828).
bench/ingress/node_modules/.package-lock.json: bench/ingress/package.json bench/ingress/package-lock.json bench/ingress/.npmrc
	npm install --prefix bench/ingress --no-save --ignore-scripts --omit=optional --no-progress
	@touch $@

bench-console: build ## 4 min | Measure 200 open task pages and a list of 100,000 tasks
	cd bench && go run ./console -bin ../bin $(ARGS)

bench-fleet: build ## 5 min | Measure what a fleet of many workers costs one Redis
	cd bench && go run ./fleet -bin ../bin $(ARGS)

bench-poll: setup build ## 3 min | Measure how soon a comment is answered where GitHub is polled
	cd bench && go run ./poll -bin ../bin $(ARGS)

bench-review: setup build ## 3 min | Measure what reviews find, with and without the second look (KEY=sk-ant-… ARGS='-models sonnet,opus')
	@cd bench && KEY='$(KEY)' go run ./review -bin ../bin $(ARGS)

bench-gateway: ## 1 min | Measure what the gateway of a run adds, and a credential that is held
	go test ./agent/internal/gateway -run '^$$' -bench 'FirstByte|Held' -benchtime 1000x -count 5
	go test ./agent/internal/gateway -run '^$$' -bench StreamCPU -benchtime 3x

bench-clouds: setup build ## 11 min | Ask each cloud for ten minutes with credentials that expire every 20 s, with the real CLI
	CLOUD_MINUTES=10 go test ./cmd/worker -count=1 -parallel 4 -timeout 40m -run TestClouds -v

bench-workspace: ## 8 min | Measure clones beside git's own, in a repository of 100,000 files
	cd bench && go run ./workspace $(ARGS)

bench-environment: setup build ## 4 min | Measure what runs in a sandbox pay for their environment, and run the tests of projects
	cd bench && go run ./environment $(ARGS)

clean: ## | Remove what make created; .env and .errand stay
	rm -rf bin dist node_modules bench/node_modules bench/ingress/node_modules $(PEERS)/node_modules $(BROWSER)/node_modules e2e/out

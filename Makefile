# Plain make prints what there is to make. Works with GNU make 3.81 (macOS) and later.
#
#   make example NAME=booking-sms          or order-loyalty, payment-feed, product-events; default: read-model
#   make test PKGS=./cursor/...            one package and those below it; default: work, which is all modules of go.work
#   make test ARGS='-run Advance -v'       further arguments of go test
#   make test RACE=-race                   with the race detector, which needs a C compiler
#   PGLOCAL_VERSION=16 make test           on another major version of PostgreSQL
#   PGLOCAL_EMBEDDED=1 make test           on a fetched PostgreSQL, even if this machine has one
#   DATABASE_URL=postgres://… make test    on a server of yours, whose user may create databases
#   make test SEED=random                  what tests draw by chance differs each time; by default it is always the same
#   make fuzz FUZZTIME=10m                 every target for so long
#   make mutants ARGS='-run epoch'         those whose name or killer has this in it; -ci: those that CI runs
#   make torture SEED=7 FOR=10m            a campaign of faults; the same seed gives the same schedule
#   make soak SEEDS=20 FOR=4m              before a release: all that may find something new, which CI may not

GO = go
# Those that take longest begin first, so that no processor waits for one of them at the end.
PKGS = ./sources/table ./sinks/kafka ./sinks/nats ./sinks/rabbitmq ./sinks/sql work
ARGS =
RACE =
VERSIONS = 14 15 16 17 18
FUZZTIME = 10s
SEED =
FOR = 1m
SEEDS = 6
RETENTION_SECONDS = 600

# Tests wait for servers and timers, hence more of them at once than there are cores. With eight, two cores were never idle, and
# each test was slow.
TEST_FLAGS = -count=1 -timeout 40m -parallel 4

# What tests draw by chance: pgregory.net/rapid reads this variable, and so does pgtest.Seed. 0 = another one each time.
export RAPID_SEED = $(if $(filter random,$(SEED)),0,$(or $(SEED),1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## This list. Needs: nothing
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile
	@echo
	@awk '!/^#/ { exit } NR > 2 { print substr($$0, 2) }' Makefile

# For --version, where Go stamps nothing: in a worktree, or with -buildvcs=false.
COMMIT = $(shell git describe --always --dirty --exclude='*' --abbrev=12 2>/dev/null)

.PHONY: build
build: ## bin/ordered-dispatcher. Needs: Go
	$(GO) build -trimpath -ldflags "-X github.com/ordered-dispatcher/ordered-dispatcher/command.commit=$(COMMIT)" -o bin/ordered-dispatcher ./cmd/ordered-dispatcher

# A server that DATABASE_URL names already is used instead. It waits for a signal, and not for the end of its input: in the
# background it has none. `go run` would not pass on SIGTERM.
.PHONY: postgres
postgres: ## A throw-away PostgreSQL until Ctrl-C; prints its address. Needs: Go; PostgreSQL, or the network once to fetch it
	@$(GO) build -o bin/withpg ./internal/pgtest/withpg
	@exec bin/withpg sh -c 'echo "export DATABASE_URL=$$DATABASE_URL"; sleep 2147483647 & trap "kill $$!" INT TERM; wait || :'

.PHONY: demo
demo: ## Producers, two workers, a crash and a verdict. Needs: Go; PostgreSQL, or the network once to fetch it
	$(GO) run ./proof/demo

NAME = read-model
EXAMPLES = booking-sms order-loyalty payment-feed product-events read-model
WITH_product-events = $(GO) run ./internal/brokertest/withrabbitmq

.PHONY: example
example: ## A system of examples/ with its verdict; NAME says which, see below. Needs: Go; PostgreSQL, or the network once to fetch it
	@test -n "$(filter $(NAME),$(EXAMPLES))" || { echo "there is no example $(NAME) to run: NAME is one of $(EXAMPLES)" >&2; exit 2; }
	$(GO) run ./internal/pgtest/withpg $(WITH_$(NAME)) $(GO) run ./examples/$(NAME)

.PHONY: test
test: ## All tests on a throw-away server. Needs: Go; PostgreSQL, or the network once to fetch it
	$(GO) run ./internal/pgtest/withpg $(GO) test $(RACE) $(TEST_FLAGS) $(ARGS) $(PKGS)

.PHONY: test-versions
test-versions: ## All tests on PostgreSQL 14 to 18. Needs: Go; the network once for each version not on this machine
	@test -z "$$DATABASE_URL" || { echo "test-versions starts servers of its own: unset DATABASE_URL" >&2; exit 2; }
	@failed=; \
	for version in $(VERSIONS); do \
		echo "PostgreSQL $$version"; \
		PGLOCAL_VERSION=$$version $(MAKE) test || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "failed on PostgreSQL$$failed" >&2; exit 1; }

# go test takes one target at a time. A new input that fails is kept in testdata/fuzz: commit it with the fix.
.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME (10s). Needs: Go
	@grep -r --include='*_test.go' -E '^func Fuzz' . | sed -E 's#/[^/]*:func (Fuzz[A-Za-z0-9_]*).*# \1#' | sort | \
	while read -r package target; do \
		echo "$$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$package" || exit 1; \
	done

# A program that is missing fails it: CI is set.
.PHONY: model
model: ## The protocol's models, verified, and what each protection is for. Needs: Go; spin and gcc, as in Debian's packages
	@bash -o pipefail -c 'CI=true $(GO) test -count=1 -parallel 4 -v $(ARGS) ./docs/model | grep -Ev "^(=== | *--- PASS)"'

.PHONY: reference
reference: ## The lists of settings in docs, docs/dispatcher.schema.json and docs/commands.md, from the code. Needs: Go
	$(GO) run ./proof/reference

# Node.js 22 is one of the site's packages, for the machine at hand. No package's script runs. A site below a path: make docs SITE_BASE=/ordered-dispatcher
.PHONY: docs
docs: ## The documents as a site in site/dist, and a test of its links. Needs: npm with Node.js 18 or later; the network once
	cd site && npm ci --silent --ignore-scripts && ASTRO_TELEMETRY_DISABLED=1 npm run --silent build && npm test --silent

.PHONY: fmt
fmt: ## Formats all Go files. Needs: Go
	gofmt -w .

# What is compiled to see that it can be, without optimization: that takes three quarters of the time.
QUICK = -gcflags='all=-N -l'

.PHONY: vet
vet: ## go vet, here, and for macOS of packages that differ there; compiles the program for Windows, where tests do not run. Needs: Go
	$(GO) vet work
	GOOS=darwin $(GO) vet $(QUICK) $$(GOOS=darwin $(GO) list -f '{{if .IgnoredGoFiles}}{{.ImportPath}}{{end}}' work)
	GOOS=windows $(GO) build $(QUICK) -o /dev/null ./cmd/ordered-dispatcher

.PHONY: lint
lint: ## staticcheck, in the version of tools/go.mod. Needs: Go; the network once
	GOWORK=off $(GO) build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck work

# vale parses Go with C: so the first build takes a minute or two.
.PHONY: prose
prose: ## The words and sentences of documents and doc.go files, by vale and .vale.ini. Needs: Go; a C compiler; the network once
	GOWORK=off $(GO) build -C tools -o ../bin/vale github.com/vale-cli/vale/v3/cmd/vale
	bin/vale --output=line --no-global --glob='{**/*.md,**/doc.go}' .

.PHONY: formatted
formatted:
	@unformatted=$$(gofmt -l .); \
	test -z "$$unformatted" || { echo "not formatted; run make fmt:" $$unformatted >&2; exit 1; }

.PHONY: modules
modules:
	$(GO) mod verify
	GO="$(GO)" tools/modules check

# Nothing here may find something new by chance, or depend on how busy the machine is: see soak. The tests come last, so that the
# last lines are those of go test.
.PHONY: check
check: formatted modules vet lint prose docs ## What CI runs: format, modules, vet, lint, prose, docs, some mutants, one torture, test with -race. Needs: as test; a C compiler; see .ci/run
	$(MAKE) mutants ARGS=-ci
	$(MAKE) torture-short
	$(MAKE) test RACE=-race

# What it prints last goes into docs/reliability.md.
.PHONY: soak
soak: ## Before a release: tests by chance, fuzz for FUZZTIME each, all mutants, SEEDS tortures for FOR each. Needs: as check
	@bash -o pipefail tools/soak "$(MAKE)" "$(SEEDS)" "$(FOR)" "$(FUZZTIME)"

.PHONY: tags
tags: ## Prints what tagging all modules as VERSION (v1.2.3) does; with ARGS=--tag does it, except for the push. Needs: Go; git
	tools/release "$(VERSION)" $(ARGS)

.PHONY: newcomer
newcomer: ## How long the tutorial's first delivery takes on a machine that has nothing but Go. Needs: as test; git; python3; the network
	@tools/newcomer

# goreleaser has many packages: its first build takes minutes.
.PHONY: distributor
distributor:
	GOWORK=off $(GO) build -C tools/goreleaser -trimpath -buildvcs=false -o ../../bin/goreleaser github.com/goreleaser/goreleaser/v2
	GOWORK=off $(GO) build -C tools/goreleaser -trimpath -buildvcs=false -o ../../bin/cyclonedx-gomod github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

.PHONY: release
release: distributor ## What a release publishes, into dist: archives, .deb, .rpm, SBOMs, checksums. Needs: Go; the network once
	tools/distribute $(ARGS)

.PHONY: reproduce
reproduce: ## Builds the release twice and compares; quicker with ARGS='--only linux/amd64'. Needs: as release
	$(MAKE) release ARGS='--twice $(ARGS)'

.PHONY: packaging
packaging: distributor ## The packages, the unit, the image, compose and the chart, tested. Needs: as test and release; dpkg, rpm, systemd
	cd proof/deploy && GOWORK=off $(GO) mod tidy -diff && GOWORK=off $(GO) vet ./...
	CI=$${CI:-true} $(GO) run ./internal/pgtest/withpg env GOWORK=off $(GO) -C proof/deploy test -count=1 -timeout 20m $(ARGS) ./...

.PHONY: alerts
alerts: ## The alert rules and the dashboard, held against promtool and the metrics. Needs: Go; promtool (Debian: prometheus)
	$(GO) test -count=1 -run TestDeploy -v ./command/internal/daemon/metrics
	$(GO) test -count=1 ./proof/dashboard

.PHONY: mutants
mutants: ## Each protection switched off, and the test that notices it; with ARGS=-ci those for CI. Needs: as test
	$(GO) run ./internal/pgtest/withpg $(GO) run ./proof/mutants $(ARGS)

.PHONY: torture
torture: ## Real daemons under faults by the seed SEED, for FOR; ends with a verdict. Needs: as test; rabbitmq-server
	$(GO) run ./proof/torture -for $(FOR) $(if $(SEED),-seed $(SEED)) $(if $(RACE),-race)

.PHONY: torture-short
torture-short: ## One fixed seed of torture, a few minutes. Needs: as test; rabbitmq-server
	$(GO) run ./proof/torture -short

.PHONY: receivers
receivers: ## Receivers of all languages behind a daemon that is killed 30 times, and their tests. Needs: as test; what .ci/run installs
	CI=true $(GO) run ./internal/pgtest/withpg $(GO) test -count=1 -timeout 20m $(ARGS) ./proof/receivers -args -kills 30

# They show the fleet of TestPictures, so they are made anew after each change of a page.
.PHONY: console-times
console-times: ## How quick the page of 1,000 processes is, as ratios; on a quiet machine. Needs: as test; chromium
	CI=true CONSOLE_TIMES=1 $(GO) run ./internal/pgtest/withpg $(GO) test -count=1 -v -run TestMany ./proof/console

.PHONY: screenshots
screenshots: ## The pictures of the console in docs/images, light and dark. Needs: as test; chromium, and the fonts of .ci/run
	CI=true CONSOLE_SHOTS=$(CURDIR)/docs/images $(GO) run ./internal/pgtest/withpg $(GO) test -count=1 -run TestPictures ./proof/console

.PHONY: services
services: ## The receivers of docs/sinks on their usual ports, those that do not run yet. Needs: Go; see docs/sinks
	$(GO) run ./proof/services

.PHONY: bench-retention
bench-retention: ## 5,000 inserts a second for RETENTION_SECONDS, without and with retention: deliveries and size. Needs: as bench
	$(GO) run ./proof/bench -only retention -seconds $(RETENTION_SECONDS)

.PHONY: bench
bench: ## The measurements that the documentation quotes. Needs: Go; PostgreSQL, or the network once to fetch it
	$(GO) run ./proof/bench

# Plain make prints what there is to make. Works with GNU make 3.81 (macOS) and later.
#
#   make test PKGS=./cursor/...            one package and those below it
#   make test ARGS='-run Advance -v'       further arguments of go test
#   make test RACE=-race                   with the race detector, which needs a C compiler
#   PGLOCAL_VERSION=16 make test           on another major version of PostgreSQL
#   PGLOCAL_EMBEDDED=1 make test           on a fetched PostgreSQL, even if this machine has one
#   DATABASE_URL=postgres://… make test    on a server of yours, whose user may create databases

GO = go
PKGS = ./...
ARGS =
RACE =
VERSIONS = 14 15 16 17 18

# Tests mostly wait for servers and timers, hence more of them at once than there are cores.
TEST_FLAGS = -count=1 -timeout 20m -parallel 8

.DEFAULT_GOAL := help

.PHONY: help
help: ## This list. Needs: nothing
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile
	@echo
	@awk '!/^#/ { exit } NR > 2 { print substr($$0, 2) }' Makefile

.PHONY: build
build: ## bin/ordered-dispatcher. Needs: Go
	$(GO) build -trimpath -o bin/ordered-dispatcher ./cmd/ordered-dispatcher

.PHONY: demo
demo: ## Producers, two workers, a crash and a verdict. Needs: Go; PostgreSQL, or the network once to fetch it
	$(GO) run ./cmd/ordered-dispatcher demo

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

.PHONY: fmt
fmt: ## Formats all Go files. Needs: Go
	gofmt -w .

.PHONY: vet
vet: ## go vet, here and for macOS. Needs: Go
	$(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

.PHONY: lint
lint: ## staticcheck, in the version of tools/go.mod. Needs: Go; the network once
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

.PHONY: formatted
formatted:
	@unformatted=$$(gofmt -l .); \
	test -z "$$unformatted" || { echo "not formatted; run make fmt:" $$unformatted >&2; exit 1; }

.PHONY: modules
modules:
	$(GO) mod verify
	$(GO) mod tidy -diff

.PHONY: check
check: formatted modules vet lint ## What CI runs: format, modules, vet, lint, test with -race. Needs: as test; a C compiler
	$(MAKE) test RACE=-race

.PHONY: bench
bench: ## The measurements that the documentation quotes. Needs: Go; PostgreSQL, or the network once to fetch it
	$(GO) run ./internal/bench

# Two commands do all: `make run` serves with embedded defaults, `make test`
# passes the tests. Both need only Go; test installs what else it needs where it
# may (see .ci/setup).

VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
STAMP = -X main.version=$(VERSION) -X main.commit=$(COMMIT)
GO_FILES = $(shell git ls-files '*.go' ':!*_templ.go') # those are written by templ
# Where races matter, the tests run under the race detector too, and those that name no
# database engine (dbtest.Default) run on PostgreSQL.
RACED = ./internal/base/db ./internal/base/logbuffer ./internal/notify/... ./internal/payment ./internal/base/queue ./internal/base/work ./internal/callback ./internal/settings ./internal/ledger ./web/... ./jobs

.PHONY: run build test check soak fuzz demo bench clean

run: ## serve with embedded database and queue; merchants on this machine may be notified
	BACKSTOP_NOTIFY_ALLOW_CIDRS=$${BACKSTOP_NOTIFY_ALLOW_CIDRS:-127.0.0.0/8,::1/128} go run -ldflags "$(STAMP)" . serve

build: ## the binary, without paths of this machine
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(STAMP)" -o backstop .

test: ## everything, with real databases and a real Redis
	./.ci/setup
	./.ci/tidily go test -timeout 15m ./...
	BACKSTOP_TEST_DATABASE=postgres ./.ci/tidily go test -race -timeout 15m -short $(RACED)

check: ## what must hold before every commit
	@unformatted=$$(go tool gofumpt -l $(GO_FILES)) && test -z "$$unformatted" || { echo "$$unformatted"; echo "run: go tool gofumpt -w ."; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	@if git ls-files '*.templ' | grep -q .; then go tool templ fmt -fail . && go tool templ generate && git diff --exit-code -- '*_templ.go'; fi
	go mod verify

soak: ## kills and races at their full counts; takes hours
	./.ci/setup
	E2E_FULL=1 ./.ci/tidily go test -timeout 6h ./internal/e2e ./internal/payment

fuzz: ## each parser for a minute
	@for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz'); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 60s $$pkg || exit 1; \
		done; \
	done

demo: ## a server that simulated suppliers, merchants and buyers keep busy
	go run -ldflags "$(STAMP)" . serve --demo

bench: ## what this machine does without and with the product, side by side
	go run -ldflags "$(STAMP)" . bench

clean:
	rm -f backstop

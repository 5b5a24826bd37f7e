# Pacer: build, test, lint, demo. Everything runs on a machine with Go and
# Debian; `make deps` installs what the tests need beyond Go.

GO        ?= go
# -cpu 1: all timers of a synctest bubble share one context of Go 1.26's race
# detector. Two goroutines that run their due timers at once crash it
# (golang/go#78156); on one core, no two do. Programs that tests start have all cores.
TESTFLAGS ?= -race -cpu 1 -shuffle=on -timeout 20m
# make lint vets. Without tables for debuggers each of some eighty test programs
# links in two thirds of the time. Without the paths of this machine what was
# compiled in one clone is good in every other.
LEAN      := -vet=off -trimpath -ldflags=-w
# Tests without the race detector take the packages that make build has compiled.
PLAIN     := CGO_ENABLED=0 $(GO) test -tags grpcnotrace $(LEAN)
# The race detector would let every package sleep for a second at its end.
GORACE    ?= atexit_sleep_ms=50
export GORACE
BIN       := bin/pacer

.PHONY: build image sbom release packages notices test sdk sdk-deps sdk-clients sdk-otel sdk-compose sdk-envoy envoy numbers numbers-whole numbers-programs numbers-e2e numbers-incidents numbers-pacer numbers-requests numbers-cores numbers-bench deps bench microbench accuracy arena fuzz soak attack hosts batches engines faults loadtools routers chart scale kubernetes long lint format demo clean

# What pacer version says, in every way to build: here, in the image
# (--build-arg), and by the Go tool itself (go install …@v1.2.3).
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE     ?= $(shell git log -1 --format=%cI 2>/dev/null)
STAMP    := -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION) -X main.date=$(DATE)

build: ## the static binary, bin/pacer
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -ldflags "$(STAMP)" -o $(BIN) ./cmd/pacer

image: ## the container image pacer:VERSION
	docker build --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg DATE=$(DATE) -t pacer:$(VERSION) .

sbom: build ## what is in bin/pacer, as CycloneDX: bin/pacer.cdx.json
	$(BIN) version --sbom >$(BIN).cdx.json

release: ## everything that a release consists of, in dist/: programs, packages, image, checksums; RELEASE_KEY signs
	cd release && $(GO) run . -version "$(VERSION)" -commit "$(REVISION)" -date "$(DATE)"

packages: ## what make release makes, installed and run here: a Debian of its own, pip, npm, rpm, the image; the version before beside this one
	@sh deploy/test-deps.sh packages
	cd release && $(GO) test -count=1 -timeout 20m ./...
	$(GO) test -count=1 -run TestTwoVersions ./e2e

notices: ## cmd/pacer/licenses.txt anew, from the modules in the program
	$(GO) test -count=1 -run '^TestLicenses$$' ./cmd/pacer -update

test: deps ## every test, with the race detector
	@.ci/race-test $(GO) test $(LEAN) $(TESTFLAGS)

sdk: sdk-clients sdk-otel sdk-compose sdk-envoy ## the official SDKs for Go, Python and Node, OpenTelemetry's collector, Compose's library and a real Envoy, with the built program

sdk-deps:
	@sh deploy/test-deps.sh sdk

sdk-clients: sdk-deps
	cd e2e/sdk && $(GO) test -count=1 -timeout 25m ./...

sdk-otel: sdk-deps
	cd e2e/otel && $(GO) test -count=1 -timeout 25m ./...

sdk-compose: sdk-deps
	cd e2e/compose && $(GO) test -count=1 -timeout 25m ./...

sdk-envoy: sdk-deps
	$(PLAIN) -count=1 -timeout 25m ./e2e/envoy -args -envoy $(CURDIR)/bin/envoy

envoy: ## pacer picker beside a real Envoy at full length, and what it costs: docs/ENVOY.md
	@sh deploy/test-deps.sh sdk
	@mkdir -p bin && rm -f bin/envoy.md
	$(GO) test -count=1 -timeout 60m -v ./e2e/envoy -args -envoy $(CURDIR)/bin/envoy -long -table $(CURDIR)/bin/envoy.md; \
	status=$$?; cat bin/envoy.md; exit $$status

numbers: numbers-whole numbers-programs numbers-cores numbers-bench ## the promises in numbers at full length, which the race detector would make slow

# The tests that do less under the race detector. They are found in the sources, so
# that none is forgotten. make packages runs the one of two versions.
SHORTENED = $(GO) run ./internal/racetest/shortened
# Whole processes do late beside the arena what they have to do in time.
PROGRAMS = ./e2e ./e2e/bench
# Nearly all of it computes: with the heap let grow to five times what is used it takes
# three quarters of the time.
numbers-whole:
	names=$$($(SHORTENED) -names) && \
	GOGC=400 $(PLAIN) -timeout 20m -run "$$names" $(filter-out $(PROGRAMS) ./cmd/pacer $(CORES),$(shell $(SHORTENED)))

# They mostly wait: side by side they take the cores that there are. With the race
# detector tests have one core; those of requests have all of them here.
numbers-programs:
	$(MAKE) -k -j4 -Otarget numbers-e2e numbers-incidents numbers-pacer numbers-requests
INCIDENTS = TestAnIncidentIsReadFromThePage
numbers-e2e:
	names=$$($(SHORTENED) -names) && $(PLAIN) -timeout 20m -run "$$names" -skip 'TestTwoVersions|$(INCIDENTS)' ./e2e
numbers-incidents:
	$(PLAIN) -timeout 20m -run '^$(INCIDENTS)$$' ./e2e
numbers-pacer:
	$(PLAIN) -timeout 20m ./cmd/pacer
CORES = ./gateway ./providers
numbers-requests:
	$(PLAIN) -timeout 20m $(CORES)
	$(PLAIN) -timeout 20m $(CORES) -args -client net/http

# What measures ratios has the cores to itself.
numbers-cores:
	names=$$($(SHORTENED) -names) && $(PLAIN) -timeout 20m -run "$$names" ./e2e/bench

numbers-bench: # benchmarks still measure something
	@mkdir -p bin
	$(PLAIN) -run '^$$' -bench . -benchtime 1x $$(git grep -l '^func Benchmark' '*_test.go' | xargs dirname | sort -u | sed 's|^|./|') >bin/benchmarks.log 2>&1 || { cat bin/benchmarks.log; exit 1; }

deps: ## redis-server and chromium, by apt when absent and root
	@sh deploy/test-deps.sh

BENCHFLAGS ?= -rounds 5 -length 3s
bench: ## Pacer beside a bare Go proxy, HAProxy and nginx, as ratios within one run: docs/PERFORMANCE.md
	@mkdir -p bin && rm -f bin/bench.md
	$(GO) test -count=1 -timeout 60m -run '^TestPaired$$' ./e2e/bench -args -paired -table $(CURDIR)/bin/bench.md -json $(CURDIR)/bin/bench.json $(BENCHFLAGS); \
	status=$$?; cat bin/bench.md; exit $$status

microbench: ## every benchmark once, with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./...

SEEDS ?= 36
accuracy: ## learned curves against known truths, long form, as a table
	@mkdir -p bin && rm -f bin/accuracy.md
	$(GO) test -count=1 -timeout 60m -run TestGoals ./internal/accuracy -args -seeds $(SEEDS) -table $(CURDIR)/bin/accuracy.md; \
	status=$$?; cat bin/accuracy.md; exit $$status

ARENASEEDS ?= 3
arena: ## every policy on every pool of docs/ARENA-TABLE.md, as its tables
	@mkdir -p bin && rm -f bin/arena.md
	$(GO) test -count=1 -timeout 60m -run TestTable ./internal/arena -args -seeds $(ARENASEEDS) -table $(CURDIR)/bin/arena.md; \
	status=$$?; cat bin/arena.md; exit $$status

# A minute for each target is the long form. Making every input smaller that
# reaches new code would take up to a minute for each one, all of the time.
FUZZTIME ?= 60s
fuzz: ## each fuzz target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$pkg; \
		done; done

DURATION ?= 10m
STREAMS  ?= 2000
soak: ## streams by the thousand whose clients hang up at random, for DURATION: nothing may be left, every count exact
	$(GO) test -count=1 -timeout 0 -v -run '^TestSoak$$' ./e2e -args -soak $(DURATION) -streams $(STREAMS)

# Before all other work, where that is allowed: a tool that is woken late sends late.
loadtools: FIRST = $(shell chrt -r 10 true 2>/dev/null && echo '-exec "chrt -r 10"')
loadtools: ## guidellm and aiperf in front of the built program, and pacer bench beside them and (after make engines) vllm bench serve; keeps 7 GB in bin/load
	@sh deploy/test-deps.sh sdk
	@mkdir -p bin && rm -f bin/loadtools.md
	$(GO) test -count=1 -timeout 120m $(FIRST) -v ./e2e/load -args -tools $(CURDIR)/bin/load -vllm $(CURDIR)/bin/engines/vllm -table $(CURDIR)/bin/loadtools.md

routers: ## vLLM's and SGLang's routers, cache-aware, and Pacer before the same simulated engines, one load of chats to each; 30 minutes, keeps 100 MB in bin/routers
	@sh deploy/test-deps.sh sdk
	@mkdir -p bin && rm -f bin/routers.md
	$(GO) test -count=1 -timeout 60m -v ./e2e/routers -args -routers $(CURDIR)/bin/routers -table $(CURDIR)/bin/routers.md

engines: ## llama.cpp's and vLLM's own servers behind the built program; keeps 7 GB in bin/engines
	@sh deploy/test-deps.sh sdk
	$(GO) test -count=1 -timeout 90m -v ./e2e/engines -args -engines $(CURDIR)/bin/engines

attack: ## every attack of docs/OPERATIONS.md at full size, and what the victim saw
	$(GO) test -count=1 -timeout 30m -v ./e2e/attack -args -full
	$(GO) test -count=1 -timeout 30m ./e2e/attack -args -client net/http
	$(GO) test -count=1 -timeout 30m ./e2e/attack -args -relay loop

hosts: ## gateways on hosts of their own (as root): 30 ms, 1 % loss, a store cut off, clocks two hours apart; Valkey's Sentinel and Cluster fail over under load
	@sh deploy/test-deps.sh
	@sh deploy/test-deps.sh sdk
	$(GO) test -count=1 -timeout 60m -v ./e2e/hosts -args -hosts -valkey $(CURDIR)/bin/valkey

faults: ## what Redis can suffer, each for as long as docs/OPERATIONS.md says
	$(GO) test -count=1 -timeout 15m -v -run 'TestRedisFaults|TestAKilledGateway|TestEachGateway|TestThreeGateways|TestTheCommandsWithinSentences' ./e2e -args -long

batches: ## a job of 10,000 requests beside users, while a gateway, Redis and an engine are killed
	$(GO) test -count=1 -timeout 20m -v -run '^TestABatchAmongUsers$$' ./e2e -args -long

chart: ## the Helm chart: rendered, held against Kubernetes' types and standards; UPDATE=1 writes deploy/kubernetes/pacer.yaml
	cd e2e/kubernetes/chart && $(GO) test -count=1 -timeout 10m . $(if $(UPDATE),-args -update)

FLEET ?= 10x60
scale: ## the tables of docs/SCALE.md: what a Redis is asked, floors with late news, decisions, how one gateway grows
	@mkdir -p bin
	$(GO) test -count=1 -timeout 20m -run '^TestWhatARedisIsAsked$$' ./e2e -args -scale $(CURDIR)/bin/scale-redis.md
	$(GO) test -count=1 -timeout 120m -run '^TestScale$$' ./internal/arena -args -scale $(CURDIR)/bin/scale-arena.md -fleet $(FLEET) -seconds 30 $(SCALE)
	$(GO) test -run '^$$' -bench 'BenchmarkPlace$$' ./router
	$(GO) test -count=1 -timeout 20m -run '^TestGrowth$$' ./e2e/bench -args -grow $(CURDIR)/bin/scale-grow.md
	@cat bin/scale-redis.md bin/scale-arena.md bin/scale-grow.md

ETCD ?= etcd
kubernetes: ## discovery against Kubernetes' own API server, which takes 12 minutes to build; ETCD names an etcd
	@mkdir -p bin && command -v $(ETCD) >/dev/null || { echo "no etcd: apt-get install etcd-server"; exit 1; }
	cd e2e/kubernetes/apiserver && $(GO) build -trimpath -ldflags="-s -w" -o $(CURDIR)/bin/kube-apiserver .
	$(GO) test -count=1 -timeout 10m -v -run 'TestARealAPIServer|TestTheManifests' ./fleet/kubernetes -args -apiserver $(CURDIR)/bin/kube-apiserver -etcd $(ETCD)

long: fuzz soak attack hosts faults batches scale kubernetes loadtools routers engines accuracy arena ## what takes too long for every change

TOOL = cd tools && $(GO) tool
lint: ## gofumpt, vet, staticcheck
	@mkdir -p bin && cd tools && $(GO) build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck && $(GO) build -o ../bin/gofumpt mvdan.cc/gofumpt
	@unformatted=$$(bin/gofumpt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofumpt would change:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	bin/staticcheck ./...

format: ## gofumpt in place
	$(TOOL) gofumpt -l -w $$(git ls-files '*.go' | sed 's|^|../|')

demo: ## the main job, seen
	$(GO) run ./cmd/pacer demo

clean:
	rm -rf bin

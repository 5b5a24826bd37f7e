package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// plan is one question, read and checked.
type plan struct {
	cfg  *config.Config
	from string // how the configuration is called

	curves  map[string]truth // by backend; filled by learnCurves
	prefill float64          // prompt tokens/s where nothing tells; 0 = not stated
	slots   int              // sequences that run together where nothing tells; 0 = not stated

	load     workload
	policies []arena.Policy
	faults   []arena.Fault
	lastly   struct { // of faults, the one that begins last
		at   time.Duration
		text string // as written
	}
	seed uint64
	idle float64 // seconds of rest after each second of work; 0 = none

	attainment float64   // 0 = what each route promises
	factors    []float64 // of the load; one, or those of a sweep
	swept      bool
	replicas   map[string]int // by backend, where it is not 1
	searched   string         // backend of which the least number is sought; "" = none
	least      int            // from which number
	most       int            // to which
}

// Bounds of one plan.
const (
	maxPlanned  = 10_000_000 // requests of one run
	maxFactors  = 50         // of a sweep
	maxReplicas = 256        // of one backend
	maxSlots    = 1 << 16    // of one engine
	maxScale    = 1000
	maxRate     = 1e6 // requests/s
	usualTime   = 10 * time.Minute
	maxTime     = 7 * 24 * time.Hour
	exampleRate = "5/s"
	exampleName = "the example"
)

func (q *Question) read() (*plan, error) {
	if err := q.exclusive(); err != nil {
		return nil, err
	}
	p := &plan{prefill: q.Prefill, slots: q.Slots, seed: q.Seed, attainment: q.Attainment, replicas: map[string]int{}}
	var err error
	if p.cfg, p.from, err = q.configuration(); err != nil {
		return nil, err
	}
	p.cfg = apart(p.cfg)
	if q.Config == "" && q.Trace == "" && q.Rate == "" {
		q.Rate = exampleRate
	}
	if p.load, err = q.readLoad(p.cfg); err != nil {
		return nil, err
	}
	if p.policies, err = readPolicies(q.Policies); err != nil {
		return nil, err
	}
	for _, text := range q.Faults {
		list, err := readFault(text, p.cfg)
		if err != nil {
			return nil, err
		}
		p.faults = append(p.faults, list...)
		if first := list[0].At; first >= p.lastly.at {
			p.lastly.at, p.lastly.text = first, text
		}
	}
	slices.SortStableFunc(p.faults, func(a, b arena.Fault) int { return cmp.Compare(a.At, b.At) })
	if err := p.readReplicas(q.Replicas); err != nil {
		return nil, err
	}
	p.factors, p.swept = []float64{q.Scale}, q.Sweep != ""
	if p.swept {
		if p.factors, err = readSweep(q.Sweep); err != nil {
			return nil, err
		}
	}
	if p.swept && p.searched != "" {
		return nil, errors.New("--sweep and a range of --replicas-of are given; keep one")
	}
	return p, nil
}

// exclusive looks at flags that do not go together, and at plain numbers.
func (q *Question) exclusive() error {
	given := q.Given
	both := func(a, b string) bool { return given(a) && given(b) }
	switch {
	case both("admin", "store"):
		return errors.New("--admin and --store are given; keep one")
	case given("store") && q.Config == "":
		return errors.New("--store needs -c FILE, which names the backends")
	case both("trace", "rate"):
		return errors.New("--trace and --rate are given; keep one")
	case given("trace") && (given("prompt") || given("output") || given("shape")):
		return errors.New("a trace has its own prompts, answers and arrivals; leave --prompt, --output and --shape out")
	case both("sweep", "scale"):
		return errors.New("--sweep and --scale are given; keep one")
	case !(q.Scale > 0 && q.Scale <= maxScale):
		return fmt.Errorf("--scale is %v; write a number up to %d, such as 1.5", q.Scale, maxScale)
	case given("attainment") && !(q.Attainment > 0 && q.Attainment < 1):
		return fmt.Errorf("--attainment is %v; write a share between 0 and 1, such as 0.99", q.Attainment)
	case given("slots") && (q.Slots < 1 || q.Slots > maxSlots):
		return fmt.Errorf("--slots is %d; write how many sequences an engine runs at once, from 1 to %d", q.Slots, maxSlots)
	case given("prefill") && !(q.Prefill > 0 && q.Prefill <= 1e9):
		return fmt.Errorf("--prefill is %v; write prompt tokens per second, such as 12000", q.Prefill)
	case given("duration") && (q.Duration < time.Second || q.Duration > maxTime):
		return fmt.Errorf("--duration is %v; write from 1s to %v", q.Duration, maxTime)
	case q.Warmup < 0 || given("warmup") && given("duration") && q.Warmup >= q.Duration:
		return fmt.Errorf("--warmup is %v; write less than the duration", q.Warmup)
	}
	return nil
}

// readPolicies reads names, as the arena has them or with hyphens; all is
// every one.
func readPolicies(names []string) ([]arena.Policy, error) {
	var list []arena.Policy
	for _, name := range names {
		policy := arena.Policy(strings.ReplaceAll(strings.TrimSpace(name), "-", "_"))
		switch {
		case policy == "all":
			return arena.Policies(), nil
		case !slices.Contains(arena.Policies(), policy):
			var known []string
			for _, k := range arena.Policies() {
				known = append(known, string(k))
			}
			return nil, fmt.Errorf("--policy: no policy %.40q; %s", name, spelling.Meant(name, append(known, "all")))
		case !slices.Contains(list, policy):
			list = append(list, policy)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("--policy names none; write pacer, or all")
	}
	return list, nil
}

const faultForms = "write kill:BACKEND@60s, drift:BACKEND:1.5@60s or redis_lost@60s, and +30s behind it for when it is over"

// readFault reads KIND[:BACKEND[:FACTOR]]@WHEN[+FOR] as what begins, and what
// ends it. The name of a backend may be that of one of its models, which has
// colons of its own, and whatever else a model is called.
func readFault(text string, cfg *config.Config) ([]arena.Fault, error) {
	what, when, timed := cutLast(text, "@")
	begin, length, ends := strings.Cut(when, "+")
	at, err := time.ParseDuration(begin)
	if !timed || err != nil || at < 0 || at > maxTime {
		return nil, fmt.Errorf("--fault %.60q does not say when; %s", text, faultForms)
	}
	var over time.Duration
	if ends {
		if over, err = time.ParseDuration(length); err != nil || over <= 0 || over > maxTime {
			return nil, fmt.Errorf("--fault %.60q: %.20q is no length of time; %s", text, length, faultForms)
		}
	}
	kind, backend, named := strings.Cut(what, ":")
	kind = strings.ReplaceAll(kind, "-", "_")
	factor, factored := "", false
	if kind == "drift" {
		backend, factor, factored = cutLast(backend, ":")
	}
	first := arena.Fault{At: at}
	last := arena.Fault{At: at + over}
	switch {
	case kind == "redis_lost" && !named:
		first.Kind, last.Kind = arena.RedisLost, arena.RedisBack
	case kind == "kill" && named:
		first.Kind, last.Kind = arena.Kill, arena.Back
	case kind == "drift" && factored:
		first.Kind, last.Kind, last.Factor = arena.Drift, arena.Drift, 1
		first.Factor, err = strconv.ParseFloat(factor, 64)
		if err != nil || !(first.Factor >= 0.01 && first.Factor <= 100) {
			return nil, fmt.Errorf("--fault %.60q: %.20q is no factor on the time of a step; write one from 0.01 to 100, such as 1.5", text, factor)
		}
	default:
		return nil, fmt.Errorf("--fault %.60q is no fault; %s", text, faultForms)
	}
	if named {
		if !hasBackend(cfg, backend) {
			return nil, fmt.Errorf("--fault %.60q: no backend %.60q; %s", text, backend, spelling.Meant(backend, fleet.Names(cfg)))
		}
		first.Backend, last.Backend = backend, backend
	}
	if !ends {
		return []arena.Fault{first}, nil
	}
	return []arena.Fault{first, last}, nil
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func hasBackend(cfg *config.Config, name string) bool {
	return slices.ContainsFunc(cfg.Backends, func(b config.Backend) bool { return b.Name == name })
}

// readReplicas reads BACKEND=COUNT and, once, BACKEND=LEAST..MOST.
func (p *plan) readReplicas(list []string) error {
	for _, text := range list {
		name, count, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("--replicas-of %.60q says no number; write BACKEND=4, or BACKEND=1..8", text)
		}
		if !hasBackend(p.cfg, name) {
			return fmt.Errorf("--replicas-of: no backend %.60q; %s", name, spelling.Meant(name, fleet.Names(p.cfg)))
		}
		if _, twice := p.replicas[name]; twice || p.searched == name {
			return fmt.Errorf("--replicas-of %s is given twice; keep one", name)
		}
		low, high, ranged := strings.Cut(count, "..")
		from, err := strconv.Atoi(low)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil || from < 1 || to < from || to > maxReplicas {
			return fmt.Errorf("--replicas-of %.60q: %.30q is no number of replicas; write one from 1 to %d, or a range such as 1..8", text, count, maxReplicas)
		}
		if !ranged {
			p.replicas[name] = from
			continue
		}
		if p.searched != "" {
			return errors.New("--replicas-of has two ranges; keep one, and write a number for the other")
		}
		p.searched, p.least, p.most = name, from, to
	}
	return nil
}

// readSweep reads LEAST..MOST[/STEPS] as factors that lie evenly.
func readSweep(text string) ([]float64, error) {
	const forms = "write two factors of the load, such as 0.5..2.0, and /7 behind them for seven of them"
	ends, steps, stated := strings.Cut(text, "/")
	count := 7
	var err error
	if stated {
		if count, err = strconv.Atoi(steps); err != nil || count < 2 || count > maxFactors {
			return nil, fmt.Errorf("--sweep %.40q: %.20q is no number of factors from 2 to %d; %s", text, steps, maxFactors, forms)
		}
	}
	low, high, ok := strings.Cut(ends, "..")
	from, err1 := strconv.ParseFloat(low, 64)
	to, err2 := strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil || !(from > 0 && from < to && to <= maxScale) {
		return nil, fmt.Errorf("--sweep %.40q is no range; %s", text, forms)
	}
	factors := make([]float64, count)
	for i := range factors {
		f := from + (to-from)*float64(i)/float64(count-1)
		factors[i] = math.Round(f*1e4) / 1e4
	}
	return factors, nil
}

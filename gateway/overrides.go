package gateway

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// Bounds of what a header may ask for: beyond them it is a mistake.
const (
	maxTPSAsked  = 1e6            // tokens/s
	minTPSAsked  = 1e-3           // tokens/s, but for 0
	maxTTFTAsked = 24 * time.Hour // to the first token
)

// overrides are what the headers of a request ask for in place of its route's
// objective. nil = the route's own.
type overrides struct {
	class   *router.Class
	minTPS  *float64
	maxTTFT *time.Duration

	floorBy, ttftBy string // the headers that said so
	target          string // the backend that is to serve it, and no other; "" = any
}

// grants says whether t may have w on rt: looser than the route always,
// stricter as far as the key's allow says. Without a key everything goes.
func (t *tenant) grants(rt *route, w overrides) error {
	if t.conf == nil {
		return nil
	}
	allow, slo := t.conf.Allow, rt.conf.SLO
	if w.target != "" && !allow.Target {
		return &permissionError{header: targetHeader, allowed: "none"}
	}
	if w.class != nil && *w.class != rt.class && *w.class == router.Interactive &&
		!slices.Contains(allow.Classes, router.Interactive.String()) {
		return &permissionError{header: "x-pacer-class", allowed: "batch"}
	}
	if w.minTPS != nil && *w.minTPS > max(slo.MinTPS, allow.MinTPSMax) {
		return &permissionError{header: w.floorBy, allowed: "at most " + formatFloat(max(slo.MinTPS, allow.MinTPSMax)) + " tokens/s"}
	}
	if w.maxTTFT != nil {
		// The strictest time that the route or the key already gives; 0 = neither.
		least := slo.MaxTTFT
		if a := allow.MaxTTFTMin; a > 0 && (least == 0 || a < least) {
			least = a
		}
		switch {
		case least == 0:
			return &permissionError{header: w.ttftBy, allowed: "none"}
		case *w.maxTTFT < least:
			return &permissionError{header: w.ttftBy, allowed: "at least " + strconv.FormatInt(least.Milliseconds(), 10) + " ms"}
		}
	}
	return nil
}

// tpsHeader is one spelling of a floor.
type tpsHeader struct {
	name string
	tpot bool // milliseconds per token instead of tokens per second
}

var (
	minTPSHeaders  = []tpsHeader{{name: "x-pacer-min-tps"}, {name: "x-llm-d-slo-tpot-ms", tpot: true}, {name: "x-slo-tpot-ms", tpot: true}}
	maxTTFTHeaders = []string{"x-pacer-max-ttft-ms", "x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"}
)

// targetHeader names the backend that is to serve a request, and no other.
const targetHeader = "x-pacer-target"

// overrideHeaders are the headers that parseOverrides reads, by their canonical names.
var overrideHeaders = func() (names []string) {
	for _, h := range minTPSHeaders {
		names = append(names, http.CanonicalHeaderKey(h.name))
	}
	for _, name := range append(maxTTFTHeaders, "x-pacer-class", targetHeader) {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}()

// parseOverrides reads the headers. Where one is spelled more than once,
// Pacer's own name counts, but every spelling must be sound.
func parseOverrides(h http.Header) (overrides, error) {
	if !slices.ContainsFunc(overrideHeaders, func(name string) bool { return len(h[name]) > 0 }) {
		return overrides{}, nil // as most requests
	}
	return readOverrides(h)
}

func readOverrides(h http.Header) (w overrides, err error) {
	for _, read := range []func(http.Header) error{w.readFloor, w.readTTFT, w.readTarget, w.readClass} {
		if err := read(h); err != nil {
			return overrides{}, err
		}
	}
	return w, nil
}

func (w *overrides) readFloor(h http.Header) error {
	for _, name := range minTPSHeaders {
		v, ok, err := number(h, name.name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if name.tpot {
			v = 1000 / v
		}
		if v != 0 && !(v >= minTPSAsked && v <= maxTPSAsked) { // also +Inf, from 0 ms per token
			return &headerError{header: name.name, problem: "out of range"}
		}
		if w.minTPS == nil {
			w.minTPS, w.floorBy = &v, name.name
		}
	}
	return nil
}

func (w *overrides) readTTFT(h http.Header) error {
	for _, name := range maxTTFTHeaders {
		v, ok, err := number(h, name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		// Rounded down to nothing it would mean that there is no limit.
		if !(v*float64(time.Millisecond) >= 1 && v <= float64(maxTTFTAsked.Milliseconds())) {
			return &headerError{header: name, problem: "must be more than 0 ms and at most a day"}
		}
		if w.maxTTFT == nil {
			d := time.Duration(v * float64(time.Millisecond))
			w.maxTTFT, w.ttftBy = &d, name
		}
	}
	return nil
}

func (w *overrides) readTarget(h http.Header) (err error) {
	w.target, _, err = single(h, targetHeader)
	return err
}

// readClass comes behind readFloor: a batch request has no floor.
func (w *overrides) readClass(h http.Header) error {
	class, ok, err := single(h, "x-pacer-class")
	if err != nil || !ok {
		return err
	}
	c := router.Interactive
	switch class {
	case router.Interactive.String():
	case router.Batch.String():
		c = router.Batch
	default:
		return &headerError{header: "x-pacer-class", problem: "must be interactive or batch"}
	}
	if c == router.Batch && w.minTPS != nil && *w.minTPS > 0 {
		return &headerError{header: w.floorBy, problem: "a batch request has no floor: leave out this header, or x-pacer-class: batch"}
	}
	w.class = &c
	return nil
}

// number returns the value of a header as a number that is at least 0.
func number(h http.Header, name string) (v float64, ok bool, err error) {
	s, ok, err := single(h, name)
	if err != nil || !ok {
		return 0, false, err
	}
	v, err = strconv.ParseFloat(s, 64)
	// ParseFloat also takes what Go writes: 0x1p4, 1_000.
	if err != nil || strings.ContainsAny(s, "xX_") || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || math.Signbit(v) || len(s) > 32 {
		return 0, false, &headerError{header: name, problem: "must be a number that is not negative"}
	}
	return v, true, nil
}

func single(h http.Header, name string) (value string, ok bool, err error) {
	switch vs := h.Values(name); len(vs) {
	case 0:
		return "", false, nil
	case 1:
		return strings.TrimSpace(vs[0]), true, nil
	default:
		return "", false, &headerError{header: name, problem: "is given more than once"}
	}
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

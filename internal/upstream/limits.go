package upstream

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Limit is how a hosted API tells one of its rate limits, in headers of every
// answer.
type Limit struct {
	Of Quantity

	// Left, Most and Reset are the headers, by their canonical names, that say how
	// much is left, how large the limit is, and when all of it is there again; "" =
	// it does not tell.
	Left, Most, Reset string

	// Window is the time that the limit is for, where no header tells when it is
	// there again.
	Window time.Duration

	// Fixed: nothing is paid back before the reset. Else the limit fills up bit by
	// bit, as a token bucket does.
	Fixed bool
}

// Quantity is what a limit is of.
type Quantity int

// What limits are of.
const (
	Requests Quantity = iota
	Tokens            // of prompts and answers together
	Input             // of prompts
	Output            // of answers
	quantities
)

// Limits is what is left of each limit, by Quantity. The zero value is none.
type Limits [quantities]Left

// Left is what is left of a limit at the time it was told. The zero value is that
// nothing was told.
type Left struct {
	Left   float64   // requests or tokens
	Most   float64   // it never gets larger; 0 = not known
	Refill float64   // of it a second
	Until  time.Time // then nothing is known any more; zero = nothing was told
}

const (
	// limitMost bounds what a limit can be; who tells of more has none.
	limitMost = 1e12

	// resetMost bounds when a limit is there again, as far as it counts for how fast
	// it is paid back: the longest limits are of a month.
	resetMost = 31 * 24 * time.Hour

	// resetUnknown is how long a limit is believed of which nobody says when it is
	// there again.
	resetUnknown = 10 * time.Second

	// headerMost bounds the value of a header that is read, in bytes.
	headerMost = 64
)

// The forms that many share: OpenAI's, and one limit for all requests.
var (
	openAILimits = []Limit{
		{Of: Requests, Left: "X-Ratelimit-Remaining-Requests", Most: "X-Ratelimit-Limit-Requests", Reset: "X-Ratelimit-Reset-Requests"},
		{Of: Tokens, Left: "X-Ratelimit-Remaining-Tokens", Most: "X-Ratelimit-Limit-Tokens", Reset: "X-Ratelimit-Reset-Tokens"},
	}
	plainLimits = []Limit{
		{Of: Requests, Left: "X-Ratelimit-Remaining", Most: "X-Ratelimit-Limit", Reset: "X-Ratelimit-Reset", Fixed: true},
	}
	anthropicLimits = []Limit{
		{Of: Requests, Left: "Anthropic-Ratelimit-Requests-Remaining", Most: "Anthropic-Ratelimit-Requests-Limit", Reset: "Anthropic-Ratelimit-Requests-Reset"},
		{Of: Input, Left: "Anthropic-Ratelimit-Input-Tokens-Remaining", Most: "Anthropic-Ratelimit-Input-Tokens-Limit", Reset: "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{Of: Output, Left: "Anthropic-Ratelimit-Output-Tokens-Remaining", Most: "Anthropic-Ratelimit-Output-Tokens-Limit", Reset: "Anthropic-Ratelimit-Output-Tokens-Reset"},
	}
	mistralLimits = []Limit{
		{Of: Requests, Left: "X-Ratelimit-Remaining-Req-Minute", Most: "X-Ratelimit-Limit-Req-Minute", Window: time.Minute, Fixed: true},
		{Of: Tokens, Left: "X-Ratelimit-Remaining-Tokens-Minute", Most: "X-Ratelimit-Limit-Tokens-Minute", Window: time.Minute, Fixed: true},
	}
	fireworksLimits = []Limit{
		{Of: Requests, Left: "X-Ratelimit-Remaining-Requests", Most: "X-Ratelimit-Limit-Requests"},
		{Of: Input, Left: "X-Ratelimit-Remaining-Tokens-Prompt", Most: "X-Ratelimit-Limit-Tokens-Prompt"},
		{Of: Output, Left: "X-Ratelimit-Remaining-Tokens-Generated", Most: "X-Ratelimit-Limit-Tokens-Generated"},
	}
)

// ReadLimits reads what an answer that came now says is left. Whatever is no
// number, below zero or out of bounds is as if it had not been said. told is
// whether anything was.
func (k *Kind) ReadLimits(now time.Time, h http.Header) (limits Limits, told bool) {
	for i := range k.Limits {
		l := &k.Limits[i]
		left, ok := amount(first(h, l.Left))
		if !ok || limits[l.Of] != (Left{}) {
			continue
		}
		most, _ := amount(first(h, l.Most))
		reset, ok := untilReset(now, first(h, l.Reset))
		switch {
		case ok:
		case l.Window > 0:
			reset = l.Window
		default:
			reset = resetUnknown
		}
		tells := Left{Left: left, Most: most, Until: now.Add(reset)}
		if !l.Fixed && ok && reset > 0 {
			tells.Refill = max(most-left, 0) / reset.Seconds()
		}
		limits[l.Of], told = tells, true
	}
	return limits, told
}

// first is the first value of a header by its canonical name; "" = it is not
// there, or too long.
func first(h http.Header, name string) string {
	v := h[name]
	if name == "" || len(v) == 0 || len(v[0]) > headerMost {
		return ""
	}
	return strings.TrimSpace(v[0])
}

func amount(text string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= limitMost) {
		return 0, false
	}
	return n, true
}

// untilReset reads when a limit is there again, by the forms that there are: a
// duration (1s, 6m0s, 20ms, 1d2h), a time (RFC 3339), seconds from now, or
// seconds or milliseconds since 1970. The result is from 0 to resetMost.
func untilReset(now time.Time, text string) (d time.Duration, ok bool) {
	const (
		sinceSeconds = 1e9 // above it a number is a time, in seconds since 1970
		sinceMillis  = 1e12
	)
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case math.IsNaN(x):
			return 0, false
		case x >= sinceMillis:
			x = x/1000 - float64(now.UnixMilli())/1000
		case x >= sinceSeconds:
			x -= float64(now.UnixMilli()) / 1000
		}
		x = min(max(x, 0), resetMost.Seconds())
		return time.Duration(x * float64(time.Second)), true
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return min(max(at.Sub(now), 0), resetMost), true
	}
	days, rest, found := strings.Cut(text, "d")
	whole := 0.0
	if found {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, false
		}
		if whole, text = float64(n)*24*3600, rest; rest == "" {
			text = "0s"
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, false
	}
	x := min(max(d.Seconds()+whole, 0), resetMost.Seconds())
	return time.Duration(x * float64(time.Second)), true
}

// RetryAfter reads for how long a backend wants to be left alone, an hour at most;
// 0 = it does not say.
func RetryAfter(now time.Time, h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if ms, bad := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); bad == nil {
		seconds, err = ms/1000, nil
	}
	if err != nil {
		at, bad := http.ParseTime(h.Get("Retry-After"))
		if bad != nil {
			return 0
		}
		seconds = at.Sub(now).Seconds()
	}
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(math.Min(seconds, 3600) * float64(time.Second))
}

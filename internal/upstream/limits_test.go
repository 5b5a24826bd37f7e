package upstream

import (
	"math"
	"net/http"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// The examples of the makers' own documentation, by kind.
func TestReadLimits(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		h    http.Header
		want Limits
	}{
		"OpenAI's example": {
			"openai", headers("x-ratelimit-limit-requests", "60", "x-ratelimit-limit-tokens", "150000", "x-ratelimit-remaining-requests", "59",
				"x-ratelimit-remaining-tokens", "149984", "x-ratelimit-reset-requests", "1s", "x-ratelimit-reset-tokens", "6m0s"),
			Limits{
				Requests: {59, 60, 1, noon.Add(time.Second)},
				Tokens:   {149984, 150000, 16.0 / 360, noon.Add(6 * time.Minute)},
			},
		},
		"Groq's example": {
			"groq", headers("retry-after", "2", "x-ratelimit-limit-requests", "14400", "x-ratelimit-limit-tokens", "18000", "x-ratelimit-remaining-requests", "14370",
				"x-ratelimit-remaining-tokens", "17997", "x-ratelimit-reset-requests", "2m59.56s", "x-ratelimit-reset-tokens", "7.66s"),
			Limits{
				Requests: {14370, 14400, 30 / 179.56, noon.Add(179560 * time.Millisecond)},
				Tokens:   {17997, 18000, 3 / 7.66, noon.Add(7660 * time.Millisecond)},
			},
		},
		"Anthropic": {
			"anthropic", headers("anthropic-ratelimit-requests-limit", "50", "anthropic-ratelimit-requests-remaining", "49", "anthropic-ratelimit-requests-reset", "2026-01-01T12:00:01Z",
				"anthropic-ratelimit-input-tokens-limit", "30000", "anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-01-01T12:01:00Z",
				"anthropic-ratelimit-output-tokens-limit", "8000", "anthropic-ratelimit-output-tokens-remaining", "8000", "anthropic-ratelimit-output-tokens-reset", "2026-01-01T11:59:00Z"),
			Limits{
				Requests: {49, 50, 1, noon.Add(time.Second)},
				Input:    {0, 30000, 500, noon.Add(time.Minute)},
				Output:   {8000, 8000, 0, noon},
			},
		},
		"Mistral, which tells no reset": {
			"mistral", headers("x-ratelimit-limit-tokens-minute", "5000000", "x-ratelimit-remaining-tokens-minute", "4999911", "x-ratelimit-limit-req-minute", "720", "x-ratelimit-remaining-req-minute", "717"),
			Limits{Requests: {717, 720, 0, noon.Add(time.Minute)}, Tokens: {4999911, 5000000, 0, noon.Add(time.Minute)}},
		},
		"OpenRouter, in milliseconds since 1970": {
			"openrouter", headers("X-RateLimit-Limit", "20", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1767268830000"),
			Limits{Requests: {0, 20, 0, noon.Add(30 * time.Second)}},
		},
		"seconds since 1970": {"together", headers("X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "1767268805"), Limits{Requests: {1, 0, 0, noon.Add(5 * time.Second)}}},
		"seconds":            {"together", headers("X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "5"), Limits{Requests: {1, 0, 0, noon.Add(5 * time.Second)}}},
		"Fireworks, without a reset": {
			"fireworks", headers("x-ratelimit-limit-requests", "600", "x-ratelimit-remaining-requests", "599", "x-ratelimit-remaining-tokens-prompt", "7", "x-ratelimit-limit-tokens-prompt", "9"),
			Limits{Requests: {599, 600, 0, noon.Add(resetUnknown)}, Input: {7, 9, 0, noon.Add(resetUnknown)}},
		},
		"none":                         {"openai", headers("x-ratelimit-limit-requests", "60"), Limits{}},
		"of an engine, which has none": {"vllm", headers("x-ratelimit-remaining-requests", "0"), Limits{}},
		"less than nothing":            {"openai", headers("x-ratelimit-remaining-requests", "-1"), Limits{}},
		"no number":                    {"openai", headers("x-ratelimit-remaining-requests", "NaN", "x-ratelimit-remaining-tokens", "many"), Limits{}},
		"too many":                     {"openai", headers("x-ratelimit-remaining-requests", "1e300", "x-ratelimit-remaining-tokens", "Inf"), Limits{}},
		"a reset of no form":           {"openai", headers("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "soon"), Limits{Requests: {0, 0, 0, noon.Add(resetUnknown)}}},
		"a reset in ages":              {"openai", headers("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "9999-01-01T00:00:00Z"), Limits{Requests: {0, 0, 0, noon.Add(resetMost)}}},
		"a reset gone by":              {"openai", headers("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "-5s"), Limits{Requests: {0, 0, 0, noon}}},
		"days":                         {"openai", headers("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1d2h"), Limits{Requests: {0, 0, 0, noon.Add(26 * time.Hour)}}},
	} {
		got, told := Of(c.kind).ReadLimits(noon, c.h)
		for i := range got {
			if d := got[i].Refill - c.want[i].Refill; math.Abs(d) < 1e-9 {
				got[i].Refill = c.want[i].Refill
			}
		}
		if got != c.want || told != (c.want != Limits{}) {
			t.Errorf("%s: got %+v, told %v; want %+v", name, got, told, c.want)
		}
	}
}

// Whatever stands in the headers, what is read of them is finite and bounded.
func FuzzReadLimits(f *testing.F) {
	for _, seed := range [][3]string{{"59", "60", "1s"}, {"0", "0", "2m59.56s"}, {"-1", "1e99", "1767268830000"}, {"NaN", "Inf", "2026-01-01T12:00:01Z"}, {"", "", "9d9d"}, {"0x1p-2", "1_0", "+Inf"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, left, most, reset string) {
		for _, k := range All() {
			h := http.Header{}
			for _, l := range k.Limits {
				h[l.Left], h[l.Most], h[l.Reset] = []string{left}, []string{most}, []string{reset}
			}
			limits, _ := k.ReadLimits(noon, h)
			for i, l := range limits {
				if l.Until.IsZero() {
					if l != (Left{}) {
						t.Fatalf("%s: %+v without a time", k.Word, l)
					}
					continue
				}
				for _, x := range []float64{l.Left, l.Most, l.Refill} {
					if !(x >= 0 && x <= 1e21) {
						t.Fatalf("%s, limit %d of %q, %q, %q: %+v", k.Word, i, left, most, reset, l)
					}
				}
				if d := l.Until.Sub(noon); d < 0 || d > resetMost {
					t.Fatalf("%s, limit %d of %q: until %v", k.Word, i, reset, d)
				}
			}
		}
	})
}

package translate

import (
	"net/http"
	"strings"
	"time"
)

// RateLimits returns what the headers of a target say of its limits, by the names
// that clients of another dialect read. Chat has the time until a limit is whole
// again, messages the moment.
func RateLimits(from, to Name, h http.Header, now time.Time) http.Header {
	out := http.Header{}
	if from == to {
		return out
	}
	for _, what := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"} {
		for _, figure := range []string{"Limit", "Remaining", "Reset"} {
			theirs, ours := limitHeader(from, what, figure), limitHeader(to, what, figure)
			if theirs == "" || ours == "" || h.Get(theirs) == "" {
				continue
			}
			value := h.Get(theirs)
			if figure == "Reset" {
				if value = resetAs(to, value, now); value == "" {
					continue
				}
			}
			out.Set(ours, value)
		}
	}
	return out
}

func limitHeader(d Name, what, figure string) string {
	switch d {
	case Chat, Responses:
		if strings.Contains(what, "-") {
			return ""
		}
		return "X-Ratelimit-" + figure + "-" + what
	case Messages:
		return "Anthropic-Ratelimit-" + what + "-" + figure
	}
	return ""
}

// resetAs writes when a limit is whole again as to has it: a moment or a time
// span.
func resetAs(to Name, value string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		span, err := time.ParseDuration(value)
		if err != nil {
			return ""
		}
		at = now.Add(span)
	}
	if to == Messages {
		return at.UTC().Format(time.RFC3339)
	}
	return max(at.Sub(now), 0).Round(time.Millisecond).String()
}

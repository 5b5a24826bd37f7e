package attack

import (
	"fmt"
	"strings"
)

// Requests that are to be understood otherwise than they look.
func crooked(v *victim) {
	_, admin, _ := strings.Cut(v.gateway.Ready["admin"], "://")
	line := func(request, host string) string {
		return request + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer other\r\nConnection: close\r\n\r\n"
	}

	// Nothing of the admin port can be reached by the data port, nor another path
	// than the one that is written.
	for _, path := range []string{
		"/metrics", "/api/v1/profiles", "/api/v1/backends/a/drain", "//metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/healthz/../metrics",
		"/v1/models/../../metrics", "/v1//models", "//v1/models", "/v1%2fmodels", "/./metrics", "/metrics?x=/healthz", "/metrics/", "http://127.0.0.1/metrics", "http://" + admin + "/api/v1/routes", "/debug/pprof/",
	} {
		for _, method := range []string{"GET", "POST"} {
			if got := raw(v, v.addr, line(method+" "+path, "x")); status(got) != 404 && status(got) != 400 && status(got) != 405 || strings.Contains(got, "pacer_") {
				v.Errorf("%s %s: %.200q, want 404, 400 or 405", method, path, got)
			}
		}
	}
	for _, request := range []string{"CONNECT " + admin, "CONNECT /metrics", "TRACE /healthz", "OPTIONS *", "PROPFIND /v1/models", "GET *"} {
		if got := raw(v, v.addr, line(request, admin)); status(got) < 400 || status(got) >= 500 || strings.Contains(got, "pacer_") {
			v.Errorf("%s: %.200q, want a refusal", request, got)
		}
	}

	// The admin port answers to its own names alone.
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:9090", "[::1].evil.example", "evil.example#127.0.0.1", "0x7f.1", ""} {
		if got := raw(v, admin, line("GET /metrics", host)); status(got) < 400 || strings.Contains(got, "pacer_requests_total") {
			v.Errorf("admin port as %q: %.200q, want a refusal", host, got)
		}
	}
	if got := raw(v, admin, line("GET http://evil.example/metrics", admin)); status(got) < 400 {
		v.Errorf("admin port in absolute form: %.200q, want a refusal", got)
	}
	if got := raw(v, admin, line("POST /api/v1/backends/a/drain", admin)); status(got) != 403 && status(got) != 401 {
		v.Errorf("drain without a token: %.200q, want a refusal", got)
	}

	// What another tenant has looks like what nobody has.
	body := func(answer string) string { _, b, _ := strings.Cut(answer, "\r\n\r\n"); return b }
	hidden := raw(v, v.addr, post("other", "", strings.ReplaceAll(hello, "other", "chat")))
	unknown := raw(v, v.addr, post("other", "", strings.ReplaceAll(hello, "other", "none")))
	if status(hidden) != 404 || strings.ReplaceAll(body(hidden), "chat", "none") != body(unknown) {
		v.Errorf("another tenant's model: %q; one that nobody has: %q; want the same", hidden, unknown)
	}

	// Nothing of a client becomes a header.
	for name, text := range map[string]string{
		"model":         post("other", "", `{"model":"x\r\nX-Evil: 1\r\n\r\nevil","messages":[]}`),
		"x-request-id":  post("other", "X-Request-Id: a b\tX-Evil: 1\r\n", hello),
		"folded header": post("other", "X-Request-Id: a\r\n X-Evil: 1\r\n", hello),
		"bare return":   post("other", "X-Request-Id: a\rX-Evil: 1\r\n", hello),
		"null":          post("other", "X-Request-Id: a\x00X-Evil\r\n", hello),
	} {
		got := raw(v, v.addr, text)
		head, _, _ := strings.Cut(got, "\r\n\r\n")
		if status(got) == 0 || strings.Contains(head, "Evil") || strings.Contains(head, "\x00") {
			v.Errorf("%s: %.300q", name, got)
		}
	}
}

// smuggled hides a second request in the body of a first one. Whoever reads it
// finds a request without a key, and the engine gets no more than one.
func smuggled(v *victim) {
	const second = "GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Smuggled: yes\r\n\r\n"
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hello), hello)
	for name, text := range map[string]string{
		"length and chunked":         head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunked)+len(second)) + chunked + second,
		"chunked and length":         head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked + second,
		"two lengths":                head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n\r\n", len(hello), len(hello)+len(second)) + hello + second,
		"a list of lengths":          head + fmt.Sprintf("Content-Length: %d, %d\r\n\r\n", len(hello), len(hello)+1) + hello + second,
		"a length with a sign":       head + fmt.Sprintf("Content-Length: +%d\r\n\r\n", len(hello)) + hello + second,
		"identity":                   head + "Transfer-Encoding: identity\r\n\r\n" + second,
		"two encodings":              head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked + second,
		"a space before the colon":   head + "Transfer-Encoding : chunked\r\n\r\n" + chunked + second,
		"a chunk of a negative size": head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + second,
		"a chunk of a huge size":     head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + second,
		"chunks that end in LF":      head + "Transfer-Encoding: chunked\r\n\r\n" + strings.ReplaceAll(chunked, "\r\n", "\n") + second,
	} {
		got := raw(v, v.addr, text)
		answers := strings.Split(got, "HTTP/1.1 ")[1:]
		if len(answers) == 0 || len(answers) > 2 {
			v.Errorf("%s: %d answers, want one, or one for each", name, len(answers))
			continue
		}
		if len(answers) == 2 && !strings.HasPrefix(answers[1], "401 ") && !strings.HasPrefix(answers[1], "400 ") {
			v.Errorf("%s: the second request was answered %.100q, want 401: it has no key", name, answers[1])
		}
		if strings.Contains(got, `"object":"list"`) {
			v.Errorf("%s: the second request was served with the first one's key", name)
		}
	}
}

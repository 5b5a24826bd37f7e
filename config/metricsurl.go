package config

import (
	"net/url"
	"strings"
)

// metricsURL reads where an engine tells its own load: a URL, or a path on the
// server of base, the backend's url ("" = it could not be read). It is shown in
// no message: its query may hold a key.
func (r *reader) metricsURL(v value, base string, to *string) {
	s, ok := r.text(v)
	if !ok || s.text == "" {
		return
	}
	page, wrong := pageURL(s.text, base)
	if wrong != "" {
		r.problem(v.place(), "%s", wrong)
		return
	}
	*to = page
}

// pageURL returns the URL of a page of metrics, or what is wrong with it.
func pageURL(text, base string) (page, wrong string) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "the metrics_url cannot be read; write /metrics, or a whole URL such as http://10.0.0.11:8000/metrics"
	}
	if u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/") {
		server, err := url.Parse(base)
		if err != nil || base == "" {
			return "", "" // the url has its own message
		}
		u.Scheme, u.Host = server.Scheme, server.Host
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "the metrics_url must be a path such as /metrics, on the server of url, or start with http:// or https://"
	case !validHost(u.Hostname(), false) || u.Port() != "" && !validPort(u.Port()) || u.Port() == "0" || strings.HasSuffix(u.Host, ":"):
		return "", "the metrics_url has no valid host and port; write one such as http://10.0.0.11:8000/metrics"
	case u.User != nil:
		return "", "the metrics_url holds a user or password, which would not be sent; a page on the server of url gets its api_key and headers"
	case u.Fragment != "":
		return "", "the metrics_url has a fragment, which would not be sent; leave out what follows #"
	case u.Path == "" || u.Path == "/":
		return "", "the metrics_url names a server and no page; most engines have theirs at /metrics"
	}
	u.Host = strings.ToLower(u.Host)
	return u.String(), ""
}

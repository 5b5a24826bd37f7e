package config

import (
	"net/url"
	"strings"
)

// noHealth is the health_url of a backend that is not to be looked at.
const noHealth = "off"

// metricsURL reads where an engine tells its own load.
func (r *reader) metricsURL(v value, base string, to *string) {
	r.page(v, base, "metrics_url", "/metrics", to)
}

// healthURL reads where a server tells whether it is well.
func (r *reader) healthURL(v value, base string, to *string) {
	r.page(v, base, "health_url", "/health", to)
}

// page reads a field that names a page: a URL, or a path on the server of base,
// the backend's url ("" = it could not be read). It is shown in no message: its
// query may hold a key.
func (r *reader) page(v value, base, field, usual string, to *string) {
	s, ok := r.text(v)
	if !ok || s.text == "" {
		return
	}
	if s.text == noHealth && field == "health_url" {
		*to = noHealth
		return
	}
	page, wrong := pageURL(s.text, base, field, usual)
	if wrong != "" {
		r.problem(v.place(), "%s", wrong)
		return
	}
	*to = page
}

// pageURL returns the URL of a page, or what is wrong with it.
func pageURL(text, base, field, usual string) (page, wrong string) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "the " + field + " cannot be read; write " + usual + ", or a whole URL such as http://10.0.0.11:8000" + usual
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
		return "", "the " + field + " is neither a path nor a URL; write a path such as " + usual + ", on the server of url, or a whole URL with http:// or https://"
	case !validHost(u.Hostname(), false) || u.Port() != "" && !validPort(u.Port()) || u.Port() == "0" || strings.HasSuffix(u.Host, ":"):
		return "", "the " + field + " has no valid host and port; write one such as http://10.0.0.11:8000" + usual
	case u.User != nil:
		return "", "the " + field + " holds a user or password, which would not be sent; a page on the server of url gets its api_key and headers"
	case u.Fragment != "":
		return "", "the " + field + " has a fragment, which would not be sent; leave out what follows #"
	case u.Path == "" || u.Path == "/":
		return "", "the " + field + " names a server and no page; most engines have theirs at " + usual
	}
	u.Host = strings.ToLower(u.Host)
	return u.String(), ""
}

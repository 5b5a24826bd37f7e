package config

import "github.com/pacer-dev/pacer/internal/upstream"

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
	page, wrong := upstream.PageURL(s.text, base, field, usual)
	if wrong != "" {
		r.problem(v.place(), "%s", wrong)
		return
	}
	*to = page
}

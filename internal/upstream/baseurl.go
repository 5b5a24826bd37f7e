package upstream

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/hostname"
)

// versioned is how the path of most engines and hosted APIs ends.
var versioned = regexp.MustCompile(`(?i)/v[0-9]+[a-z0-9]*(/openai)?$`)

// BaseURL returns a backend's URL as it is used: scheme and host in lower
// case, no default port, no trailing slash; or what is wrong with it.
func (k *Kind) BaseURL(text string) (base, wrong string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", "the url cannot be read; write one such as http://10.0.0.11:8000/v1"
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "the url must start with http:// or https://; write one such as http://10.0.0.11:8000/v1"
	case !serverOf(u):
		return "", "the url has no valid host and port; write one such as http://10.0.0.11:8000/v1"
	case u.User != nil:
		return "", "the url holds a user or password; write api_key: or headers: instead"
	case u.Fragment != "" || k.query == nil && (u.RawQuery != "" || u.ForceQuery):
		return "", "the url has a query or a fragment, which would not be sent; leave out what follows ? or #"
	}
	query := ""
	if k.query != nil {
		if query, wrong = k.query(u); wrong != "" {
			return "", wrong
		}
	}
	u.RawQuery, u.ForceQuery = "", false
	u.Host = strings.ToLower(u.Host)
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	base = strings.TrimRight(u.String(), "/")
	if end := pastedEnd(base); end != "" {
		return "", "the url ends in " + end + ", which Pacer adds; leave it out, as in http://10.0.0.11:8000/v1"
	}
	if k.mistaken != nil {
		if wrong := k.mistaken(base); wrong != "" {
			return "", wrong
		}
	}
	return base + query, ""
}

// Root returns the path of a base URL of this kind without the version that it
// ends in, and what stands above that: where endpoints at the root are.
func (k *Kind) Root(path string) string {
	return strings.TrimSuffix(versioned.ReplaceAllString(path, ""), k.Above)
}

// HomeURL returns the base URL of what the maker of this kind hosts in a region
// and a project of theirs; or what is missing.
func (k *Kind) HomeURL(region, project string) (base, wrong string) {
	base = k.Home
	if region == "global" && k.GlobalHome != "" {
		base = k.GlobalHome
	}
	for _, part := range []struct{ hole, name, value, example string }{
		{"{region}", "region", region, "us-east-1"}, {"{project}", "project", project, "my-project"},
	} {
		if !strings.Contains(base, part.hole) {
			continue
		}
		if part.value == "" {
			return "", "a backend of kind " + k.Word + " needs a url or a " + part.name + "; write " + part.name + ": " + part.example
		}
		base = strings.ReplaceAll(base, part.hole, part.value)
	}
	return base, ""
}

var placeName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9:.-]{0,62}[a-z0-9])?$`)

// PlaceName tells whether s can be the name of a region or a project, which
// becomes a part of a host's name or of a path.
func PlaceName(s string) bool { return placeName.MatchString(s) && !strings.Contains(s, "..") }

// Doubtful reports whether base, which BaseURL returned, likely lacks the
// version that it has to end in.
func (k *Kind) Doubtful(base string) bool { return !k.AnyPath && !versioned.MatchString(base) }

// serverOf reports whether u names a server.
func serverOf(u *url.URL) bool {
	port := u.Port()
	return hostname.Valid(u.Hostname()) && !strings.HasSuffix(u.Host, ":") && (port == "" || hostname.ValidPort(port) && port != "0")
}

// pastedEnd returns the endpoint that base ends in; "" = none.
func pastedEnd(base string) string {
	end := ""
	for _, e := range endpoint.All() {
		if e.Pasted && strings.HasSuffix(base, e.Path) && len(e.Path) > len(end) {
			end = e.Path
		}
	}
	if end == "" && strings.HasSuffix(base, "/models") {
		return "/models"
	}
	return end
}

// PageURL returns the URL of a page on the server of a backend, or of another
// one; or what is wrong with it. text is a URL, or a path on the server of base.
// field is what messages call it, and usual the path that most engines have.
// With a base of "", which could not be read, a path gives neither.
func PageURL(text, base, field, usual string) (page, wrong string) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "the " + field + " cannot be read; write " + usual + ", or a whole URL such as http://10.0.0.11:8000" + usual
	}
	if u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/") {
		server, err := url.Parse(base)
		if err != nil || base == "" {
			return "", ""
		}
		u.Scheme, u.Host = server.Scheme, server.Host
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "the " + field + " is neither a path nor a URL; write a path such as " + usual + ", on the server of url, or a whole URL with http:// or https://"
	case !serverOf(u):
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

func ollamaMistaken(base string) (wrong string) {
	if strings.HasSuffix(base, "/api") {
		return "the url ends in /api, which is Ollama's own dialect; write /v1 in its place, as in http://10.0.0.11:11434/v1"
	}
	return ""
}

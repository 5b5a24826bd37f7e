package config

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// textRule says which text may stand in a field.
type textRule struct {
	pattern *regexp.Regexp      // it matches this, in the JSON Schema too; nil = whatever ok allows
	ok      func(string) bool   // and this is true of it; nil = whatever the pattern allows
	wrong   string              // what is said of another one: {field} is the field, {text} what the file has
	want    string              // not "": a bare number may stand there too, and a mapping or a list is told this
	as      func(string) string // how it is kept; nil = as it is
	kept    bool                // another one is kept as well, so that what names it is known
}

// textRules are the rules of text by the tag is.
var textRules = map[string]textRule{
	"address": {
		ok: func(s string) bool { return isHostPort(s, true) }, want: "host:port, such as 127.0.0.1:8080",
		wrong: "{field} {text} is no address; write host:port, such as 127.0.0.1:8080 or :8080",
	},
	"redis":  {ok: func(s string) bool { return isHostPort(s, false) }, wrong: "{field} is no address; write host:port, such as redis:6379"},
	"host":   {ok: isHost, as: hostname.Of, wrong: "{text} is no name; write it without scheme and port, such as pacer.example.com"},
	"origin": {ok: isOrigin, wrong: `{text} is no origin; write scheme://host[:port], such as https://app.example.com, or "*"`},
	// A name of a backend is a label, a header, and a part of the admin port's URLs.
	"name": {
		pattern: regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`), ok: func(s string) bool { return strings.Trim(s, ".") != "" }, kept: true,
		wrong: "the name {text} is not allowed; write 1 to 64 letters, digits or . _ -, such as gpu-1",
	},
	"key_name": {
		pattern: regexp.MustCompile(`^[A-Za-z0-9._:@/-]{1,64}$`), kept: true,
		wrong: "the name {text} is not allowed; write 1 to 64 letters, digits or . _ - : @ /",
	},
	// Braces would move the hash tags that keep the keys of one backend on one node of a Cluster.
	"prefix": {pattern: regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`), wrong: "prefix must be 1 to 64 letters, digits or . _ - :; write one such as pacer"},
	"tag":    {pattern: regexp.MustCompile(`^[a-z0-9_-]{1,32}$`), wrong: "{text} is no name of a tag; write 1 to 32 lower-case letters, digits, - or _"},
	// A word of OAuth is printable, without blanks, quotes and backslashes.
	"scope": {pattern: regexp.MustCompile(`^[!#-\[\]-~]{1,128}$`), wrong: "{text} is no word; write one without blanks, such as groups"},
	"model": {ok: isModel, wrong: modelWrong},
	"model_or_none": {
		ok: func(s string) bool { return s == "" || isModel(s) }, wrong: modelWrong,
	},
	// A region or a project becomes a part of a URL.
	"place": {ok: upstream.PlaceName, wrong: "{field} {text} is not allowed; write it as its maker does, in small letters, digits and -, such as us-east-1"},
	"kube_name": {
		pattern: regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`),
		wrong:   "{field} {text} is no name of an object; write small letters, digits, - and ., such as vllm",
	},
	"kube_port": {
		pattern: regexp.MustCompile(`^[a-z0-9.-]{1,63}$`), ok: isPortOrName, want: "a port, such as http or 8000",
		wrong: "port {text} is none; write its name in the Service or its number, such as http or 8000",
	},
	"kube_api": {ok: isServer, as: serverOf, wrong: "api is no URL of a server; write one such as https://10.0.0.1:6443"},
	"command":  {ok: func(s string) bool { return !strings.Contains(s, "\x00") }, wrong: "{field} holds a zero byte, which no argument can; take it out"},
	// The text of these may be a secret, or hold one, so no message shows it.
	"header_secret": {ok: upstream.HeaderValue, wrong: "{field} holds a line break, a control character or outer blanks, which no HTTP header can carry; take them out"},
	"webhook_url":   {ok: isHTTP, wrong: "{field} is no URL; write one such as https://hooks.example.com/pacer"},
	"proxy": {
		ok:    func(s string) bool { return s == "" || s == ProxyOff || upstream.ProxyURL(s) },
		wrong: "egress_proxy is no proxy; write one such as http://proxy:3128 or socks5://proxy:1080, or off",
	},
}

const modelWrong = "{field} {text} is no name of a model; write 1 to 256 bytes without outer blanks or control characters"

// ruled reads text into a string or a Secret, by one of textRules.
func (r *reader) ruled(v value, to any, rule textRule) {
	var s scalar
	var ok bool
	if rule.want == "" {
		s, ok = r.text(v)
	} else {
		s, ok = r.scalar(v, rule.want)
	}
	if !ok {
		return
	}
	right := (rule.pattern == nil || rule.pattern.MatchString(s.text)) && (rule.ok == nil || rule.ok(s.text))
	if !right {
		r.problem(v.place(), "%s", strings.NewReplacer("{field}", v.name, "{text}", quote(s.raw)).Replace(rule.wrong))
	}
	if !right && !rule.kept {
		return
	}
	if rule.as != nil {
		s.text = rule.as(s.text)
	}
	switch to := to.(type) {
	case *string:
		*to = s.text
	case *Secret:
		*to = Secret(s.text)
	}
}

// isHostPort reports an address to listen on, which needs no host, or to reach.
func isHostPort(text string, listen bool) bool {
	host, port, err := net.SplitHostPort(text)
	return err == nil && (listen && host == "" || hostname.Valid(host)) && hostname.ValidPort(port)
}

func isHost(text string) bool { return hostname.Valid(text) && strings.Trim(text, ".") != "" }

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == "*" || err == nil && u.Host != "" && u.Scheme+"://"+u.Host == text && !strings.Contains(text, "*")
}

// isModel reports a name that clients and engines may use for a model.
func isModel(text string) bool {
	return text != "" && len(text) <= 256 && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, unicode.IsControl)
}

// isPortOrName reports whether what is a number is that of a port.
func isPortOrName(text string) bool {
	return strings.Trim(text, "0123456789") != "" || strings.Trim(text, "0") != "" && hostname.ValidPort(text)
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isServer reports a URL without path, query and password.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return isHTTP(text) && err == nil && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
}

// serverOf is the beginning of a URL for which isServer is true.
func serverOf(text string) string {
	u, _ := url.Parse(text)
	return u.Scheme + "://" + u.Host
}

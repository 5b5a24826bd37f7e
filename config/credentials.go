package config

import (
	"net/url"
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// ProxyOff is the egress_proxy of a backend that is reached directly, whatever the
// environment says.
const ProxyOff = "off"

// BackendKey is one of several credentials of a backend.
type BackendKey struct {
	// the key itself
	Key Secret `yaml:"key" is:"header_secret" unset:"none"`
	// file that holds it, read again when it has changed
	File string `yaml:"file" is:"file" unset:"none"`
	// command that prints it
	Command Command `yaml:"command" unset:"none"`
	// hard cap on requests at once with this key, at least 1
	MaxConcurrency int `yaml:"max_concurrency" min:"1" unset:"none"`
}

// decode reads a key, or a mapping.
func (k *BackendKey) decode(r *reader, v value) {
	if v.is(yaml.ScalarNode) {
		r.ruled(v, &k.Key, textRules["header_secret"])
		return
	}
	r.object(v, k)
}

func (k *BackendKey) check(r *reader, o object) {
	if o.clean() && ways(k.Key != "", k.File != "", k.Command.On()) != 1 {
		r.problem(o.start, "%s has to have one of key, file and command; write it as { file: key.txt }", o.name)
	}
}

// Command makes a secret.
type Command struct {
	// program and arguments, as a list; no shell is between
	Run []string `yaml:"run" is:"command" required:"[ vault, read, -field=key, secret/llm ]" want:"a list such as [ vault, read, -field=key, secret/llm ]" empty:"name a program"`
	// how long it may take
	Timeout time.Duration `yaml:"timeout" above:"0" unset:"10s"`
	// how long what it prints is good, where it does not say so itself
	Life time.Duration `yaml:"life" above:"0" unset:"5m"`
}

// On reports whether there is a command.
func (c Command) On() bool { return len(c.Run) > 0 }

// decode reads a list, or a mapping.
func (c *Command) decode(r *reader, v value) {
	if !v.is(yaml.SequenceNode) {
		r.object(v, c)
		return
	}
	run := r.shape(reflect.TypeFor[Command]()).byName["run"]
	r.sequence(run, v, reflect.ValueOf(&c.Run).Elem(), c)
}

func ways(given ...bool) (n int) {
	for _, g := range given {
		if g {
			n++
		}
	}
	return n
}

// checkKeys looks at what a backend's credentials say together.
func (b *Backend) checkKeys(r *reader, o object) {
	header, _ := b.kind().Key("")
	_, set := b.Headers[header]
	n := ways(b.APIKey != "", b.APIKeyFile != "", b.APIKeyCommand.On(), len(b.APIKeys) > 0, b.Auth != "")
	switch {
	case n > 1:
		r.problem(o.start, "%s has several of api_key, api_key_file, api_key_command, api_keys and auth; keep one, or list them in api_keys", o.name)
	case set && n > 0:
		r.problem(o.at("headers"), "headers has an %s beside api_key; keep one", header)
	case b.Auth == upstream.AuthAWS && b.kind().Service == "":
		r.problem(o.at("auth"), "auth: aws signs what goes to Bedrock, and a backend of kind %s is not that; leave it out, or write kind: bedrock", b.Kind)
	}
	if n == 0 && !set {
		b.Auth = b.kind().Auth
	}
	if b.Auth == upstream.AuthAWS && b.Region == "" && upstream.RegionOf(hostOf(b.URL)) == "" && o.clean() {
		r.problem(o.start, "what goes to Bedrock is signed for a region, and the url does not tell it; write region: us-east-1")
	}
}

// Keyed reports whether b has credentials.
func (b *Backend) Keyed() bool {
	return b.APIKey != "" || b.APIKeyFile != "" || b.APIKeyCommand.On() || len(b.APIKeys) > 0 || b.Auth != ""
}

// apart reports whether b and other may have one URL: each of their models is
// counted by itself, or they are used as another API or by another account, whose
// limits are its own.
func (b *Backend) apart(other *Backend) bool {
	return b.Separate() && other.Separate() || b.Kind != other.Kind ||
		b.APIKey != other.APIKey || b.APIKeyFile != other.APIKeyFile || b.Auth != other.Auth ||
		!reflect.DeepEqual(b.APIKeyCommand, other.APIKeyCommand) || !reflect.DeepEqual(b.APIKeys, other.APIKeys)
}

// Cap is how many requests at once b takes: max_concurrency, or what its keys take
// together where that is less; 0 = no cap.
func (b *Backend) Cap() int {
	keys := 0
	for _, k := range b.APIKeys {
		if k.MaxConcurrency == 0 {
			return b.MaxConcurrency
		}
		keys += k.MaxConcurrency
	}
	if b.MaxConcurrency > 0 && (keys == 0 || b.MaxConcurrency < keys) {
		return b.MaxConcurrency
	}
	return keys
}

// hostOf is the host in a URL; "" = it has none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

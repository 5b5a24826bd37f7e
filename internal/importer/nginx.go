package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Nginx reads the upstream blocks of an nginx configuration. nginx does not look
// at models: the first upstream becomes the route for all of them, each other one
// a route of its name.
func Nginx(text []byte) (Result, error) {
	n := nginx{result: result{from: "upstreams of nginx"}}
	words, err := nginxWords(string(text))
	if err != nil {
		return Result{}, err
	}
	n.read(words)
	if len(n.file.Backends) == 0 {
		return Result{}, fmt.Errorf("it has no upstream with a server")
	}
	return n.write()
}

type nginx struct{ result }

// word is one word of the configuration, with its line.
type word struct {
	text string
	line int
}

var nginxWord = regexp.MustCompile(`#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{};]|[^\s{};"']+|\n`)

func nginxWords(text string) (words []word, err error) {
	const most = 1 << 20
	if len(text) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	line := 1
	for _, w := range nginxWord.FindAllString(text, -1) {
		switch {
		case w == "\n":
			line++
		case strings.HasPrefix(w, "#"):
		default:
			words = append(words, word{strings.Trim(w, `"'`), line})
			line += strings.Count(w, "\n")
		}
	}
	return words, nil
}

// read goes over the words: upstream NAME { … }.
func (n *nginx) read(words []word) {
	for i := 0; i+2 < len(words); i++ {
		switch {
		case words[i].text == "upstream" && words[i+2].text == "{":
			i = n.upstream(words[i+1].text, words, i+3)
		case words[i].text == "listen" && n.file.Listen == "":
			if _, err := strconv.Atoi(words[i+1].text); err == nil {
				n.note(words[i].line, "write listen: 0.0.0.0:"+words[i+1].text+" if Pacer is to take its place", "listen %s stays behind: Pacer listens on 127.0.0.1:8080", words[i+1].text)
			}
		case strings.HasPrefix(words[i].text, "ssl_certificate"):
			n.note(words[i].line, "write tls: { cert: …, key: … }", "%s stays behind", words[i].text)
		}
	}
}

// upstream reads one block and returns where it ends.
func (n *nginx) upstream(name string, words []word, at int) int {
	r := route{Models: []string{name}}
	if len(n.file.Routes) == 0 {
		r.Models = []string{everything}
	} else {
		n.note(words[at-3].line, "give the route the names of the models that run there", "the upstream %s is a route of its name", name)
	}
	weights := false
	for at < len(words) && words[at].text != "}" {
		end := at
		for end < len(words) && words[end].text != ";" && words[end].text != "}" {
			end++
		}
		weights = n.directive(&r, words[at:end]) || weights
		if at = end; at < len(words) && words[at].text == ";" {
			at++
		}
	}
	if !weights {
		r.Split = nil
	}
	if len(r.Targets) > 0 {
		n.file.Routes = append(n.file.Routes, r)
	}
	return at
}

// directive takes one line of a block, and reports whether it has a weight.
func (n *nginx) directive(r *route, words []word) (weighted bool) {
	if len(words) == 0 {
		return false
	}
	switch words[0].text {
	case "server":
		return n.server(r, words)
	case "keepalive", "keepalive_timeout", "keepalive_requests", "keepalive_time", "zone", "least_conn", "random":
	case "ip_hash", "hash":
		n.note(words[0].line, "set affinity: session on the route, and send x-session-id", "%s has no counterpart", words[0].text)
	default:
		n.note(words[0].line, "nothing, if the engines do not need it", "%s has no counterpart", words[0].text)
	}
	return false
}

func (n *nginx) server(r *route, words []word) (weighted bool) {
	if len(words) < 2 || strings.HasPrefix(words[1].text, "unix:") {
		n.note(words[0].line, "have the engine listen on a port", "a server without a host cannot be reached by Pacer")
		return false
	}
	host := words[1].text
	if !strings.Contains(host[strings.LastIndex(host, "]")+1:], ":") {
		host += ":80"
	}
	b, weight := backend{URL: "http://" + host + "/v1"}, 1.0
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w.text, "=")
		v, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "weight":
			weight, weighted = v, true
		case "max_conns":
			b.MaxConcurrency = int(v)
		case "down":
			n.note(w.line, "add it when it is up again", "the server %s is down, and was left out", host)
			return false
		case "backup":
			n.note(w.line, "move it to a route of its own, and spill to that", "the server %s was a backup, and is a target as any other", host)
		case "max_fails", "fail_timeout", "resolve", "slow_start":
		default:
			n.note(w.line, "nothing, if the engines do not need it", "%s of a server has no counterpart", name)
		}
	}
	for _, have := range n.file.Backends {
		if have.URL == b.URL {
			b.Name = have.Name
		}
	}
	if b.Name == "" {
		b.Name = n.name(strings.NewReplacer(":", "-", "[", "", "]", "").Replace(host))
		n.file.Backends = append(n.file.Backends, b)
	}
	r.Targets = append(r.Targets, target{Backend: b.Name})
	if r.Split == nil {
		r.Split = map[string]float64{}
	}
	r.Split[b.Name] = weight
	return weighted
}

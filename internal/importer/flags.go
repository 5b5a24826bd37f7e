package importer

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Flags reads the command line of vllm-router (of vLLM's production stack) or of
// sglang-router, as it stands in a script or a unit: lines may end in a backslash.
func Flags(text []byte) (Result, error) {
	flags := parseFlags(string(text))
	f := commandLine{result: result{from: "the flags of a router"}, flags: flags}
	urls := split(flags["static-backends"].values)
	if len(urls) == 0 {
		urls = flags["worker-urls"].values
	}
	if len(urls) == 0 {
		if flags["service-discovery"].first() == "k8s" {
			return Result{}, fmt.Errorf("it finds its engines by Kubernetes; write one backend with discover: dns for the headless service instead")
		}
		return Result{}, fmt.Errorf("it has neither --static-backends nor --worker-urls")
	}
	f.engines(urls)
	f.aliases()
	f.others()
	return f.write()
}

type commandLine struct {
	result
	flags map[string]option
}

// option is one flag with what followed it.
type option struct {
	values []string
	line   int
}

func (o option) first() string {
	if len(o.values) == 0 {
		return ""
	}
	return o.values[0]
}

// parseFlags reads --name value, --name=value and --name of several values.
func parseFlags(text string) map[string]option {
	flags := map[string]option{}
	name := ""
	for i, line := range strings.Split(text, "\n") {
		for _, word := range strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), `\`)) {
			word = strings.Trim(word, `"'`)
			if long, ok := strings.CutPrefix(word, "--"); ok {
				var value string
				var has bool
				name, value, has = strings.Cut(long, "=")
				flags[name] = option{line: i + 1}
				if !has {
					continue
				}
				word = value
			}
			if name != "" {
				o := flags[name]
				o.values = append(o.values, strings.Trim(word, `"'`))
				flags[name] = o
			}
		}
	}
	return flags
}

func split(values []string) (all []string) {
	for _, v := range values {
		for _, part := range strings.Split(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

func (f *commandLine) engines(urls []string) {
	models := split(f.flags["static-models"].values)
	kind := "vllm"
	if _, sglang := f.flags["worker-urls"]; sglang {
		kind = "sglang"
	}
	for i, base := range urls {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" {
			f.note(f.flags["static-backends"].line, "write it with scheme and host", "%q is no url", base)
			continue
		}
		name := f.name(kind, strings.ReplaceAll(u.Host, ":", "-"))
		if u.Path == "" || u.Path == "/" {
			base = strings.TrimRight(base, "/") + "/v1"
		}
		f.file.Backends = append(f.file.Backends, backend{Name: name, URL: base, Kind: kind})
		model := everything
		if i < len(models) {
			model = models[i]
		}
		f.add(model, target{Backend: name})
	}
	if len(models) > 0 && len(models) != len(urls) {
		f.note(f.flags["static-models"].line, "name one model for each engine", "there are %d models and %d engines", len(models), len(urls))
	}
}

func (f *commandLine) add(model string, t target) {
	i := slices.IndexFunc(f.file.Routes, func(r route) bool { return slices.Contains(r.Models, model) })
	if i < 0 {
		f.file.Routes = append(f.file.Routes, route{Models: []string{model}})
		i = len(f.file.Routes) - 1
	}
	f.file.Routes[i].Targets = append(f.file.Routes[i].Targets, t)
}

// aliases gives the routes their other names; their targets then have to say what
// the engine calls the model.
func (f *commandLine) aliases() {
	for _, pair := range split(f.flags["static-aliases"].values) {
		alias, model, _ := strings.Cut(pair, ":")
		i := slices.IndexFunc(f.file.Routes, func(r route) bool { return slices.Contains(r.Models, model) })
		if i < 0 || alias == "" {
			f.note(f.flags["static-aliases"].line, "name a model of --static-models", "the alias %q is of the unknown model %q", alias, model)
			continue
		}
		r := &f.file.Routes[i]
		r.Models = append(r.Models, alias)
		for j := range r.Targets {
			r.Targets[j].Model = model
		}
	}
}

func (f *commandLine) others() {
	if host, port := f.flags["host"].first(), f.flags["port"].first(); port != "" {
		if _, err := strconv.Atoi(port); err == nil {
			f.file.Listen = host + ":" + port
		}
	}
	for name, o := range f.flags {
		switch {
		case name == "routing-logic" || name == "policy":
			if logic := o.first(); logic == "session" {
				sticky(f.file.Routes)
				f.note(o.line, "send x-session-id, prompt_cache_key or user, which say what belongs together", "--%s session goes by a header of its own, here it is affinity: session", name)
			} else if logic == "disaggregated_prefill" {
				f.note(o.line, "keep that router as one backend", "prefill and decoding on engines of their own have no counterpart")
			}
		case known[name]:
		default:
			f.note(o.line, "look into docs/CONFIG.md whether you need it", "--%s has no counterpart", name)
		}
	}
	slices.SortFunc(f.findings, func(a, b Finding) int { return strings.Compare(a.What, b.What) })
}

// known are flags that are read above, or that mean nothing here.
var known = map[string]bool{
	"static-backends": true, "static-models": true, "static-aliases": true, "static-model-types": true, "service-discovery": true, "worker-urls": true,
	"host": true, "port": true, "session-key": true, "engine-stats-interval": true, "request-stats-window": true, "log-stats": true, "log-stats-interval": true,
	"static-backend-health-checks": true, "log-level": true, "backend-health-check-timeout-seconds": true,
}

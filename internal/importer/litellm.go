package importer

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// LiteLLM reads a config.yaml of LiteLLM's proxy. The error is about text that is
// no such file; whatever has no counterpart is a finding.
func LiteLLM(text []byte) (Result, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return Result{}, fmt.Errorf("it is no YAML: %w", err)
	}
	l := litellm{result: result{from: "a configuration of LiteLLM"}, byName: map[string]int{}}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return Result{}, fmt.Errorf("it is no mapping: a configuration of LiteLLM has a model_list")
	}
	top := mapping(root.Content[0])
	if _, ok := top["model_list"]; !ok {
		return Result{}, fmt.Errorf("it has no model_list: it is no configuration of LiteLLM, or keeps its models in a database")
	}
	l.credentials(top["credential_list"].value)
	for _, item := range list(top["model_list"].value) {
		l.deployment(item)
	}
	l.settings(top)
	l.finish()
	return l.write()
}

type litellm struct {
	result
	creds  map[string]map[string]field
	byName map[string]int // routes, by the name that clients use

	fallbacks map[string][]string
	long      map[string]string
}

// field is a value with its place.
type field struct {
	value *yaml.Node
	line  int
}

// text is the value, with variables in the form that Pacer has.
func (f field) text() string {
	if f.value == nil || f.value.Kind != yaml.ScalarNode || f.value.ShortTag() == "!!null" {
		return ""
	}
	s := f.value.Value
	if name, ok := strings.CutPrefix(s, "os.environ/"); ok {
		return "${" + name + "}"
	}
	return strings.ReplaceAll(s, "${", "$${")
}

func (f field) number() float64 {
	v, _ := strconv.ParseFloat(f.text(), 64)
	return v
}

// mapping returns the fields of a mapping by name; of anything else none.
func mapping(n *yaml.Node) map[string]field {
	fields := map[string]field{}
	if n == nil || n.Kind != yaml.MappingNode {
		return fields
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		fields[n.Content[i].Value] = field{value: n.Content[i+1], line: n.Content[i].Line}
	}
	return fields
}

func list(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// words are the texts of a list, or of one value.
func words(n *yaml.Node) (all []string) {
	if n != nil && n.Kind == yaml.ScalarNode {
		return []string{n.Value}
	}
	for _, item := range list(n) {
		all = append(all, item.Value)
	}
	return all
}

func (l *litellm) credentials(n *yaml.Node) {
	l.creds = map[string]map[string]field{}
	for _, item := range list(n) {
		c := mapping(item)
		l.creds[c["credential_name"].text()] = mapping(c["credential_values"].value)
	}
}

// deployment takes one entry of the model_list: a target of the route of its name.
func (l *litellm) deployment(n *yaml.Node) {
	entry := mapping(n)
	name, params := entry["model_name"].text(), mapping(entry["litellm_params"].value)
	line := n.Line
	if cred := params["litellm_credential_name"].text(); cred != "" {
		for k, v := range l.creds[cred] {
			if _, own := params[k]; !own {
				params[k] = v
			}
		}
	}
	model := params["model"].text()
	if name == "" || model == "" {
		l.note(line, "write model_name and litellm_params.model, or leave it out", "an entry of the model_list has no name or no model")
		return
	}
	who, rest := provided(model)
	if model == everything {
		who, rest = "openai", everything
		l.note(line, "add a route for each provider, such as \"anthropic/*\"", "the model %q of %q stands for every provider; it goes to OpenAI here", model, name)
	}
	if base := params["api_base"].text(); base != "" && providers[who].kind == "" {
		who, rest = "custom_openai", model // any prefix before an own server is LiteLLM's to guess
	}
	p, known := providers[who]
	if !known {
		l.note(line, "keep it behind LiteLLM, as a backend of kind openai with its url, if you need it", "the provider %q of %q is none that Pacer speaks to", who, name)
		return
	}
	b, ok := l.backend(who, p, params, entry, line)
	if !ok {
		return
	}
	l.add(name, target{Backend: l.place(b), Model: modelFor(name, who, rest)}, params, line)
	l.unused(name, params)
}

const everything = "*"

// modelFor is what the backend is asked for. The star of a route goes over into
// the star of the model, so a model that is * behind its provider is * alone.
func modelFor(name, who, model string) string {
	switch {
	case who == "bedrock", who == "bedrock_converse":
		model = strings.TrimPrefix(strings.TrimPrefix(model, "converse/"), "invoke/")
	case who == "vertex_ai" && strings.HasPrefix(model, "claude"):
		model = "anthropic/" + model
	}
	if name == everything && model == everything || model == name {
		return ""
	}
	if strings.HasSuffix(model, everything) && !strings.HasSuffix(name, everything) {
		return "" // what the client names
	}
	return model
}

// backend is where the deployment's requests go.
func (l *litellm) backend(who string, p provider, params, entry map[string]field, line int) (b backend, ok bool) {
	b = backend{Kind: p.kind, URL: cmp.Or(params["api_base"].text(), params["base_url"].text(), p.url)}
	switch {
	case b.URL == "" && p.needsBase:
		l.note(line, "add its url as a backend, and a target on it to the route", "%q has no api_base, and %s is a server of one's own", entry["model_name"].text(), who)
		return b, false
	case p.kind == "azure":
		b.URL = azureURL(b.URL, params["api_version"].text())
	case b.URL != p.url && !strings.HasPrefix(b.URL, "${"):
		b.URL = l.versioned(b.URL, p, line)
	}
	b.APIKey = params["api_key"].text()
	if variable := variables[who]; b.APIKey == "" && variable != "" && params["api_base"].text() == "" {
		b.APIKey = "${" + variable + "}"
	}
	if p.kind == "openai" && strings.EqualFold(b.APIKey, "none") || strings.EqualFold(b.APIKey, "fake-key") {
		b.APIKey = ""
	}
	if own := params["api_base"].text() != "" || params["base_url"].text() != "" || p.kind == "ollama"; !own || p.kind == "azure" {
		b.Models = "separate" // each model of a hosted API has engines of its own
	}
	l.cloud(&b, params, line)
	b.Headers = map[string]string{}
	for _, name := range []string{"extra_headers", "headers"} {
		for k, v := range mapping(params[name].value) {
			b.Headers[strings.ReplaceAll(k, " ", "-")] = v.text()
		}
	}
	if org := params["organization"].text(); org != "" && p.kind == "openai" {
		b.Headers["OpenAI-Organization"] = org
	}
	b.MaxConcurrency = int(params["max_parallel_requests"].number())
	info := mapping(entry["model_info"].value)
	in := cmp.Or(params["input_cost_per_token"].number(), info["input_cost_per_token"].number())
	out := cmp.Or(params["output_cost_per_token"].number(), info["output_cost_per_token"].number())
	if in > 0 || out > 0 {
		b.Price = &price{Input: perMillion(in), Output: perMillion(out)}
	}
	return b, true
}

// perMillion is a price of a token as that of a million, without the digits that
// binary fractions leave behind.
func perMillion(usd float64) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(usd*1e6, 'g', 10, 64), 64)
	return v
}

// cloud fills in what the clouds are asked with.
func (l *litellm) cloud(b *backend, params map[string]field, line int) {
	switch b.Kind {
	case "bedrock":
		b.Region = cmp.Or(params["aws_region_name"].text(), "${AWS_REGION:-us-east-1}")
		for _, name := range []string{"aws_access_key_id", "aws_profile_name", "aws_role_name"} {
			if params[name].text() != "" {
				l.note(line, "put the credentials into the environment of Pacer, where AWS's own tools look for them", "%s of a Bedrock model stays behind", name)
			}
		}
	case "vertex":
		b.Region = cmp.Or(params["vertex_location"].text(), params["vertex_ai_location"].text(), "us-central1")
		b.Project = cmp.Or(params["vertex_project"].text(), params["vertex_ai_project"].text(), "${VERTEXAI_PROJECT}")
		if params["vertex_credentials"].text() != "" {
			l.note(line, "set GOOGLE_APPLICATION_CREDENTIALS in the environment of Pacer", "vertex_credentials stays behind")
		}
	case "azure":
		if params["azure_ad_token"].text() != "" || params["tenant_id"].text() != "" {
			l.note(line, "use an api_key, or add the token as a header of the backend", "the credentials of an Azure account stay behind")
		}
	}
}

// versioned adds the version to a base URL of a server of one's own: LiteLLM's
// clients of TGI and Ollama add it themselves.
func (l *litellm) versioned(base string, p provider, line int) string {
	base = strings.TrimRight(base, "/")
	u, err := url.Parse(base)
	if err != nil || regexp.MustCompile(`/v[0-9]+(beta)?(/openai)?$`).MatchString(u.Path) || u.Path != "" && p.kind == "openai" {
		return base
	}
	if p.kind != "ollama" && p.kind != "tgi" && p.kind != "anthropic" {
		l.note(line, "correct the url if the engine serves elsewhere", "the api_base %s has no version; /v1 was added", base)
	}
	return base + "/v1"
}

// azureURL is the base of Azure's API: the newer one where no version is named.
func azureURL(base, version string) string {
	base = strings.TrimRight(base, "/")
	if i := strings.Index(base, "/openai"); i >= 0 {
		base = base[:i]
	}
	if version == "" {
		return base + "/openai/v1"
	}
	return base + "/openai?api-version=" + url.QueryEscape(version)
}

// place returns the name of the backend b: of one that is there already, if it
// differs in nothing that counts, or a new one.
func (l *litellm) place(b backend) string {
	for i := range l.file.Backends {
		have := &l.file.Backends[i]
		if have.URL == b.URL && have.Kind == b.Kind && have.Region == b.Region && have.Project == b.Project && have.APIKey == b.APIKey && maps.Equal(have.Headers, b.Headers) {
			have.MaxConcurrency = max(have.MaxConcurrency, b.MaxConcurrency)
			if have.Price == nil {
				have.Price = b.Price
			}
			return have.Name
		}
	}
	u, err := url.Parse(b.URL)
	host := ""
	if err == nil && b.Kind != "" && providerHost(u.Hostname()) {
		host = strings.SplitN(u.Hostname(), ".", 2)[0]
		if port := u.Port(); port != "" {
			host = u.Hostname() + "-" + port
		}
	}
	region := b.Region
	if strings.Contains(region, "$") {
		region = ""
	}
	b.Name = l.name(b.Kind, host, region)
	l.file.Backends = append(l.file.Backends, b)
	return b.Name
}

// providerHost reports whether a host tells backends of one kind apart.
func providerHost(host string) bool { return host != "" && !strings.HasPrefix(host, "api.") }

// add gives the route of a name another target.
func (l *litellm) add(name string, t target, params map[string]field, line int) {
	i, ok := l.byName[name]
	if !ok {
		i = len(l.file.Routes)
		l.byName[name] = i
		l.file.Routes = append(l.file.Routes, route{Models: []string{name}})
	}
	r := &l.file.Routes[i]
	if slices.Contains(r.Targets, t) {
		l.note(line, "nothing: one backend is enough, since Pacer counts what runs there", "%q has one target twice", name)
		return
	}
	r.Targets = append(r.Targets, t)
	if w := params["weight"].number(); w > 0 {
		if r.Split == nil {
			r.Split = map[string]float64{}
		}
		r.Split[t.Backend] += w
	}
	if params["order"].text() != "" {
		r.Prefer = "order"
	}
}

// unused tells of the parameters of a deployment that have no counterpart.
func (l *litellm) unused(name string, params map[string]field) {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		f := params[k]
		if do, ok := leftOut[k]; ok {
			if do != "" {
				l.note(f.line, do, "%s of %q has no counterpart", k, name)
			}
			continue
		}
		l.note(f.line, "have the client send it", "%s of %q is a default for requests, which Pacer does not change", k, name)
	}
}

// leftOut are the parameters that are read above, or for which something else is
// to be done; "" = nothing.
var leftOut = map[string]string{
	"model": "", "api_base": "", "base_url": "", "api_key": "", "api_version": "", "max_parallel_requests": "", "weight": "", "order": "",
	"extra_headers": "", "headers": "", "organization": "", "input_cost_per_token": "", "output_cost_per_token": "", "litellm_credential_name": "",
	"aws_region_name": "", "aws_access_key_id": "", "aws_secret_access_key": "", "aws_session_token": "", "aws_profile_name": "", "aws_role_name": "", "aws_session_name": "",
	"vertex_project": "", "vertex_location": "", "vertex_credentials": "", "vertex_ai_project": "", "vertex_ai_location": "",
	"azure_ad_token": "", "tenant_id": "", "client_id": "", "client_secret": "", "custom_llm_provider": "", "mock_response": "", "stream_timeout": "", "use_in_pass_through": "",
	"rpm":         "set max_concurrency, or leave it: Pacer measures what the backend carries, and reads the limits that hosted APIs tell",
	"tpm":         "set max_concurrency, or leave it: Pacer measures what the backend carries, and reads the limits that hosted APIs tell",
	"timeout":     "set timeouts.total, which holds for all backends",
	"max_retries": "leave it: Pacer moves on to another target at most twice, and never after the first byte",
	"tags":        "give the route another name, or keys their routes",
	"region_name": "write it into labels of the backend",
	"drop_params": "set drop_params: true on the backend",
	"max_budget":  "set a budget on the keys", "budget_duration": "",
}

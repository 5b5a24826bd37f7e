package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// settings takes what stands beside the model_list. LiteLLM takes most of it under
// router_settings and under litellm_settings alike.
func (l *litellm) settings(top map[string]field) {
	both := mapping(top["litellm_settings"].value)
	maps.Copy(both, mapping(top["router_settings"].value))
	l.fallbacks, l.long = map[string][]string{}, map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(both)) {
		l.setting(k, both[k])
	}
	l.redis(both)
	general := mapping(top["general_settings"].value)
	for _, k := range slices.Sorted(maps.Keys(general)) {
		l.general(k, general[k])
	}
	l.budget(both["max_budget"], both["budget_duration"])
	for _, f := range mapping(top["environment_variables"].value) {
		l.note(f.line, "set them in the environment of Pacer", "environment_variables stay behind")
		break
	}
	for _, k := range slices.Sorted(maps.Keys(top)) {
		if do, ok := otherParts[k]; ok {
			l.note(top[k].line, do, "%s has no counterpart", k)
		}
	}
}

var otherParts = map[string]string{
	"mcp_servers":            "keep LiteLLM beside Pacer for them",
	"guardrails":             "put what checks texts in front of Pacer: it passes them on as they are",
	"prompts":                "have the client send them",
	"vector_store_registry":  "call the vector store itself",
	"search_tools":           "call them from the client",
	"files_settings":         "nothing: /v1/files is Pacer's own",
	"finetune_settings":      "call the provider itself",
	"assistant_settings":     "call the provider itself",
	"team_settings":          "give each team keys of its own",
	"default_team_settings":  "give each team keys of its own",
	"pass_through_endpoints": "call the provider itself",
	"include":                "import each file, and put what comes out into one",
}

func (l *litellm) setting(k string, f field) {
	switch k {
	case "model_group_alias":
		l.aliases(f)
	case "fallbacks":
		for from, to := range moves(f.value) {
			l.fallbacks[from] = append(l.fallbacks[from], to...)
		}
	case "default_fallbacks":
		l.fallbacks[everything] = words(f.value)
	case "context_window_fallbacks":
		for from, to := range moves(f.value) {
			l.long[from] = to[0]
			if len(to) > 1 {
				l.note(f.line, "nothing, if the first takes all prompts", "of the context_window_fallbacks of %q the first is taken", from)
			}
		}
	case "content_policy_fallbacks":
		l.note(f.line, "call another model from the client", "%s has no counterpart: Pacer passes on what an engine refuses", k)
	case "drop_params":
		for i := range l.file.Backends {
			l.file.Backends[i].DropParams = strings.EqualFold(f.text(), "true") && translated[l.file.Backends[i].Kind]
		}
	case "routing_strategy":
		l.strategy(f)
	case "timeout", "request_timeout":
		l.times().Total = seconds(f)
	case "stream_timeout":
		l.times().FirstByte = seconds(f)
	case "max_budget", "budget_duration": // budget
	case "optional_pre_call_checks":
		l.checks(f, words(f.value), l.file.Routes)
	case "model_group_affinity_config":
		for name, group := range mapping(f.value) {
			if i, ok := l.byName[name]; ok {
				l.checks(group, words(group.value), l.file.Routes[i:i+1])
			}
		}
	default:
		if do := settingsLeftOut[k]; do != "" {
			l.note(f.line, do, "%s has no counterpart", k)
		} else if !strings.HasPrefix(k, "redis_") && !silent[k] {
			l.note(f.line, "look into docs/CONFIG.md whether you need it", "%s is not known to the import", k)
		}
	}
}

// everyone is the team of all keys, which has the budget of LiteLLM's proxy as a whole.
const everyone = "everyone"

// periods are LiteLLM's durations of a budget that Pacer has, in calendar periods.
var periods = map[string]string{
	"1d": "day", "24h": "day", "daily": "day", "7d": "week", "1w": "week", "weekly": "week",
	"28d": "month", "30d": "month", "31d": "month", "1mo": "month", "monthly": "month",
}

// budget takes what may be spent in all: by every key together.
func (l *litellm) budget(amount, duration field) {
	usd, per := amount.number(), periods[duration.text()]
	switch {
	case usd <= 0:
	case len(l.file.Keys) == 0:
		l.note(amount.line, "make keys, put them into one team, and give that the budget", "max_budget has no counterpart where there are no keys")
	case per == "" && duration.text() == "":
		l.note(amount.line, "put all keys into one team, and give that a budget by day, week or month", "max_budget without a duration, which never begins anew, has no counterpart")
	case per == "":
		l.note(amount.line, "put all keys into one team, and give that a budget by day, week or month", "max_budget for %s has no counterpart", duration.text())
	default:
		for i := range l.file.Keys {
			l.file.Keys[i].Team = everyone
		}
		l.file.Teams = []team{{everyone, budget{usd, per}}}
		l.note(amount.line, "put each key that you make into the team everyone", "max_budget is the budget of a team: it begins anew with each %s of the calendar, in UTC", per)
	}
}

// checks takes what LiteLLM does before it chooses a deployment: it stays with one that
// knows the prompt, which Pacer does by itself, or with that of a session.
func (l *litellm) checks(f field, checks []string, of []route) {
	for _, check := range checks {
		switch check {
		case "prompt_caching", "responses_api_deployment_check", "encrypted_content_affinity", "router_budget_limiting":
		case "session_affinity", "deployment_affinity":
			sticky(of)
			l.note(f.line, "send x-session-id (or x-litellm-session-id), prompt_cache_key or user, which say what belongs together", "%s is affinity: session", check)
		default:
			l.note(f.line, "look into docs/CONFIG.md whether you need it", "%s of optional_pre_call_checks has no counterpart", check)
		}
	}
}

// sticky has the requests of a session stay with one target.
func sticky(routes []route) {
	for i := range routes {
		routes[i].Affinity = "session"
	}
}

// translated are the kinds whose dialect is not OpenAI's.
var translated = map[string]bool{"anthropic": true, "gemini": true, "vertex": true, "bedrock": true}

// silent are settings that mean nothing here, and that nobody misses.
var silent = map[string]bool{
	"num_retries": true, "allowed_fails": true, "cooldown_time": true, "set_verbose": true, "json_logs": true, "telemetry": true,
	"retry_after": true, "deployment_affinity_ttl_seconds": true, "enable_pre_call_checks": true, "cache_responses": true, "cache_params": true, "routing_strategy_args": true,
	"retry_policy": true, "model_group_retry_policy": true, "allowed_fails_policy": true, "disable_cooldowns": true, "debug_level": true, "turn_off_message_logging": true, "suppress_debug_info": true,
}

var settingsLeftOut = map[string]string{
	"cache":                          "nothing, if prompts differ: Pacer keeps no answers; engines cache prefixes themselves",
	"callbacks":                      "use OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT), the access log, or Prometheus",
	"success_callback":               "use OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT), the access log, or Prometheus",
	"failure_callback":               "use OpenTelemetry (OTEL_EXPORTER_OTLP_ENDPOINT), the access log, or Prometheus",
	"service_callback":               "use Prometheus: the admin port has /metrics",
	"ssl_verify":                     "name the authority of a backend in its ca_file",
	"default_team_settings":          "give each team keys of its own",
	"provider_budget_config":         "set budgets on the keys",
	"upperbound_key_generate_params": "set limits on the keys",
	"default_internal_user_params":   "set limits on the keys",
	"modify_params":                  "have the client send what the model takes",
	"tag_budget_config":              "set budgets on the keys",
	"guardrails":                     "put what checks texts in front of Pacer: it passes them on as they are",
}

// moves reads a list of { from: [to, …] }.
func moves(n *yaml.Node) map[string][]string {
	all := map[string][]string{}
	for _, item := range list(n) {
		for from, to := range mapping(item) {
			if to := words(to.value); len(to) > 0 {
				all[from] = to
			}
		}
	}
	return all
}

func (l *litellm) aliases(f field) {
	aliases := mapping(f.value)
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		to := aliases[alias].text()
		if to == "" {
			to = mapping(aliases[alias].value)["model"].text()
		}
		i, ok := l.byName[to]
		switch _, taken := l.byName[alias]; {
		case !ok:
			l.note(aliases[alias].line, "name a model of the model_list", "the alias %q is of the unknown model %q", alias, to)
		case taken:
			l.note(aliases[alias].line, "take one of them out", "%q is an alias and a model", alias)
		default:
			l.file.Routes[i].alias(alias)
			l.byName[alias] = i
		}
	}
}

// alias gives the route another name. What goes up must not be that: its targets
// say what they are asked for.
func (r *route) alias(name string) {
	for i := range r.Targets {
		r.Targets[i].Model = cmp.Or(r.Targets[i].Model, r.Models[0])
	}
	r.Models = append(r.Models, name)
}

func (l *litellm) strategy(f field) {
	switch s := f.text(); s {
	case "cost-based-routing":
		for i := range l.file.Routes {
			l.file.Routes[i].Prefer = "cheapest"
		}
	case "simple-shuffle", "least-busy":
	default:
		l.note(f.line, "nothing: Pacer places by what each backend gives one more user", "the routing_strategy %q has no counterpart", s)
	}
}

func (l *litellm) times() *timeouts {
	if l.file.Timeouts == nil {
		l.file.Timeouts = &timeouts{}
	}
	return l.file.Timeouts
}

func seconds(f field) string {
	if v := f.number(); v > 0 {
		return strconv.FormatFloat(v, 'f', -1, 64) + "s"
	}
	return ""
}

// redis takes the address of the Redis that LiteLLM's proxies share.
func (l *litellm) redis(both map[string]field) {
	cache := mapping(both["cache_params"].value)
	host := cmp.Or(both["redis_host"].text(), cache["host"].text())
	if host == "" {
		if u := cmp.Or(both["redis_url"].text(), cache["url"].text()); strings.HasPrefix(u, "redis") {
			l.file.Store = u
		}
		return
	}
	if strings.HasPrefix(host, "${") {
		l.note(both["redis_host"].line, "set REDIS_URL, such as redis://host:6379/0", "the address of Redis is in variables")
		l.file.Store = "${REDIS_URL:-memory}"
		return
	}
	port := cmp.Or(both["redis_port"].text(), cache["port"].text(), "6379")
	if strings.HasPrefix(port, "${") {
		port = "6379"
	}
	l.file.Store = store{Addrs: []string{host + ":" + port}, Password: cmp.Or(both["redis_password"].text(), cache["password"].text())}
}

func (l *litellm) general(k string, f field) {
	switch k {
	case "master_key":
		if secret := f.text(); secret != "" {
			l.file.Keys = append(l.file.Keys, key{Name: "master", Key: secret})
			l.note(f.line, "give each client a key of its own, and keep key_sha256 in the file", "the master_key is a key for all routes, and has no rights on the admin port")
		}
	case "completion_model", "disable_spend_logs", "background_health_checks", "health_check_interval", "use_azure_key_vault", "infer_model_from_keys":
	default:
		do := cmp.Or(generalLeftOut[k], "look into docs/CONFIG.md whether you need it")
		l.note(f.line, do, "%s has no counterpart", k)
	}
}

var generalLeftOut = map[string]string{
	"database_url":                   "make keys anew: those in LiteLLM's database are hashed in its own way",
	"store_model_in_db":              "export the models to the file first",
	"alerting":                       "use the alerts in deploy/prometheus",
	"alerting_threshold":             "use the alerts in deploy/prometheus",
	"max_parallel_requests":          "set limits.concurrency on each key",
	"global_max_parallel_requests":   "set limits.streams",
	"custom_auth":                    "give each client a key of its own",
	"enable_jwt_auth":                "put what checks tokens in front of Pacer",
	"pass_through_endpoints":         "call the provider itself",
	"allowed_routes":                 "give keys their routes",
	"database_connection_pool_limit": "nothing",
}

// finish puts the fallbacks into the routes: a request whose own targets cannot
// serve it goes on to the next route.
func (l *litellm) finish() {
	l.splits()
	for i := range l.file.Routes {
		r := &l.file.Routes[i]
		to := l.fallbacks[r.Models[0]]
		if to == nil {
			to = l.fallbacks[everything]
		}
		var steps []map[string]any
		for _, name := range to {
			j, ok := l.byName[name]
			switch {
			case !ok:
				l.note(0, "name a model of the model_list", "the fallback of %q to %q goes nowhere", r.Models[0], name)
			case j == i:
			case l.leads(j, i, 0):
				l.note(0, "nothing, or spill the other way round", "the fallback of %q to %q would go in a circle", r.Models[0], name)
			default:
				steps = append(steps, map[string]any{"spill": l.file.Routes[j].Models[0]})
			}
		}
		if len(steps) > 0 {
			r.OnInfeasible = append([]map[string]any{{"queue": "2s"}}, steps...)
		}
		if to := l.long[r.Models[0]]; to != "" {
			if j, ok := l.byName[to]; ok && j != i {
				r.LongPrompts = l.file.Routes[j].Models[0]
			} else {
				l.note(0, "name a model of the model_list", "the context_window_fallback of %q to %q goes nowhere", r.Models[0], to)
			}
		}
	}
}

// leads reports whether route i spills to route to, at last.
func (l *litellm) leads(i, to, depth int) bool {
	if depth > len(l.file.Routes) {
		return false
	}
	for _, step := range l.file.Routes[i].OnInfeasible {
		if name, ok := step["spill"].(string); ok {
			if next := l.byName[name]; next == to || l.leads(next, to, depth+1) {
				return true
			}
		}
	}
	return false
}

// splits names the targets of a split as Pacer does, where one backend has several.
func (l *litellm) splits() {
	for i := range l.file.Routes {
		r := &l.file.Routes[i]
		seen := map[string]bool{}
		for _, t := range r.Targets {
			if seen[t.Backend] && r.Split != nil {
				l.note(0, fmt.Sprintf("write split: { %s/MODEL: … } for the targets on it", t.Backend), "the weights of %q are of several models on one backend, and were left out", r.Models[0])
				r.Split = nil
			}
			seen[t.Backend] = true
		}
	}
}

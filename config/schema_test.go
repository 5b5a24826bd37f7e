package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// node is a part of a JSON Schema.
type node map[string]any

// anyOf is one of several schemas, or a text with a variable in it.
func anyOf(of ...node) node {
	return node{"anyOf": append(of, node{"type": "string", "pattern": variablePattern})}
}

const variablePattern = `\$\{`

func text(pattern string) node {
	return node{"type": "string", "pattern": pattern + "|" + variablePattern}
}

// schemaOf is the schema of a mapping that is read into t.
func (c comments) schemaOf(t reflect.Type) node {
	s := shapeOf(t)
	properties, required, ways := node{}, []string{}, []any{}
	for i, f := range s.fields {
		for _, name := range f.names {
			p := c.schemaOfField(f, name)
			p["description"] = links.ReplaceAllString(c.of(t, f), "$1")
			if f.has("default") {
				p["default"] = jsonValue(f, s.empty.FieldByIndex(f.Index))
			}
			properties[name] = p
		}
		switch _, must := f.Tag.Lookup("required"); {
		case len(f.names) > 1:
			for _, name := range f.names {
				ways = append(ways, node{"required": []string{name}})
			}
		case must:
			required = append(required, s.fields[i].names[0])
		}
	}
	out := node{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	if len(ways) > 0 {
		out["oneOf"] = ways
	}
	if t == reflect.TypeFor[Backend]() {
		hosted := anyOf(node{"enum": hosted()})
		out["anyOf"] = []node{{"required": []string{"url"}}, {"required": []string{"kind"}, "properties": node{"kind": hosted}}}
	}
	return out
}

// jsonValue is a default as it stands in a file.
func jsonValue(f *field, v reflect.Value) any {
	if v.Type() == durationType || v.Kind() == reflect.Int64 {
		return f.tag("default")
	}
	return v.Interface()
}

func (c comments) schemaOfField(f *field, name string) node {
	if f.Type.Kind() != reflect.Slice {
		return c.schemaOfValue(f, name, f.Type)
	}
	one := c.schemaOfValue(f, name, f.Type.Elem())
	if name == f.tag("single") {
		return one
	}
	list := node{"type": "array", "items": one}
	if f.has("empty") {
		list["minItems"] = 1
	}
	if f.has("all") {
		return node{"anyOf": []node{list, {"const": f.tag("all")}}}
	}
	return list
}

// schemaOfValue is the schema of one value: by what it is, and else by its type.
func (c comments) schemaOfValue(f *field, name string, t reflect.Type) node {
	switch f.tag("is") {
	case "address", "redis":
		return text(`:`)
	case "key":
		if name == "key_sha256" {
			return text(`^[0-9a-f]{64}$`)
		}
		return node{"type": "string", "minLength": 1}
	case "time":
		return text(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?$`)
	case "model":
		return node{"type": "string", "minLength": 1}
	case "slo_preset":
		var names []string
		for name := range sloPresets {
			names = append(names, name)
		}
		slices.Sort(names)
		return anyOf(node{"enum": names})
	case "place":
		return text(`^[a-z0-9](?:[a-z0-9:.-]{0,62}[a-z0-9])?$`)
	case "split":
		return node{"type": "object", "additionalProperties": anyOf(node{"type": "number", "minimum": 0})}
	case "headers", "labels":
		return node{"type": "object", "additionalProperties": node{"type": "string"}}
	case "kube_port":
		return anyOf(node{"type": "integer", "minimum": 1, "maximum": 65535}, text(`^[a-z0-9.-]+$`))
	case "kube_api":
		return text(`^https?://`)
	case "webhook_url":
		return text(`^https?://`)
	case "global_store":
		return node{"allOf": []node{{"$ref": "#/properties/store"}, {"not": node{"const": "memory"}}}}
	case "store_tls":
		return anyOf(node{"type": "boolean"}, node{"type": "object", "additionalProperties": false, "properties": node{"ca_file": node{"type": "string"}}})
	}
	if rule := textRules[f.tag("is")]; rule.pattern != nil {
		return text(rule.pattern.String())
	}
	switch t {
	case reflect.TypeFor[Store]():
		return anyOf(node{"const": "memory"}, node{"type": "string", "pattern": "^rediss?://"}, c.schemaOf(t))
	case reflect.TypeFor[Command]():
		form := c.schemaOf(t)
		return node{"anyOf": []node{form["properties"].(node)["run"].(node), form}}
	case reflect.TypeFor[BackendKey]():
		return node{"anyOf": []node{{"type": "string"}, c.schemaOf(t)}}
	case reflect.TypeFor[Discover]():
		return anyOf(node{"const": "dns"}, c.schemaOf(t))
	case reflect.TypeFor[Step]():
		steps := []node{{"enum": []string{"best_effort", "shed"}}}
		all := c.schemaOf(t)["properties"].(node)
		for _, word := range []string{"queue", "spill"} {
			steps = append(steps, node{"type": "object", "additionalProperties": false, "required": []string{word}, "properties": node{word: all[word]}})
		}
		return node{"anyOf": steps}
	case reflect.TypeFor[Prices]():
		return node{"type": "string", "minLength": 1}
	case reflect.TypeFor[Then]():
		return anyOf(node{"enum": []string{"refuse", "warn"}}, node{
			"type": "object", "additionalProperties": false, "required": []string{"spill"}, "properties": node{"spill": node{"type": "string", "minLength": 1}},
		})
	case reflect.TypeFor[Guarantee]():
		return anyOf(node{"type": "integer", "minimum": 0, "maximum": mostPlaces}, text(percentage.String()))
	case reflect.TypeFor[Prior]():
		points := node{"type": "object", "minProperties": 1, "additionalProperties": false, "patternProperties": node{"^[1-9][0-9]*$": anyOf(node{"type": "number", "exclusiveMinimum": 0})}}
		file := node{"anyOf": []node{{"type": "string", "minLength": 1}, {"type": "array", "items": node{"type": "string", "minLength": 1}, "minItems": 1, "maxItems": maxPriorFiles}}}
		form := func(name string, of node) node {
			return node{"type": "object", "additionalProperties": false, "required": []string{name}, "properties": node{name: of}}
		}
		return anyOf(node{"enum": presetNames()}, node{"type": "string", "minLength": 1}, points, form("points", points), form("file", file))
	case durationType:
		return text(`^[+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)
	case secretType:
		return node{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return anyOf(node{"type": "boolean"})
	case reflect.Int:
		low := 0
		fmt.Sscan(f.tag("min"), &low)
		return anyOf(node{"type": "integer", "minimum": low})
	case reflect.Int64:
		return node{"anyOf": []node{{"type": "integer", "minimum": 1}, text(`^[1-9][0-9]* *(B|[KMGT]iB|[kKMGT]B)?$`)}}
	case reflect.Float64:
		switch f.tag("range") {
		case "(0,1)":
			return anyOf(node{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})
		case "[0,1]":
			return anyOf(node{"type": "number", "minimum": 0, "maximum": 1})
		}
		return anyOf(node{"type": "number", "minimum": 0})
	case reflect.String:
		if f.has("enum") {
			return anyOf(node{"enum": f.words()})
		}
		return node{"type": "string"}
	case reflect.Struct:
		if f.tag("is") == "network" {
			return node{"type": "string"}
		}
		return c.schemaOf(t)
	}
	panic("no schema of " + f.Name)
}

// TestSchema writes the schema from the types, and holds the one that is embedded
// against it.
func TestSchema(t *testing.T) {
	root := commentsOf(t).schemaOf(reflect.TypeFor[Config]())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "pacer.yaml, the configuration of Pacer"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	must.Do(t, e.Encode(root))
	if golden.Update() {
		must.Do(t, os.WriteFile("pacer.schema.json", b.Bytes(), 0o644))
		schema = b.Bytes()
	}
	if diff := cmp.Diff(b.String(), string(Schema())); diff != "" {
		t.Errorf("the schema is not that of the types; go test ./config -update writes it (-types +schema):\n%s", diff)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s := must.Get(jsonschema.CompileString("pacer.schema.json", string(Schema())))(t)
	return s
}

// document is a file as a validator of JSON takes it.
func document(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(mask(text)), &v); err != nil {
		t.Fatalf("%v of:\n%s", err, text)
	}
	data := must.Get(json.Marshal(withTextKeys(v)))(t)
	v = nil
	must.Do(t, json.Unmarshal(data, &v))
	return v
}

// withTextKeys undoes what mask did to v, and makes every key a text.
func withTextKeys(v any) any {
	out := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			out[k] = withTextKeys(x)
		}
		return out
	case map[any]any:
		for k, x := range v {
			out[fmt.Sprint(k)] = withTextKeys(x)
		}
		return out
	case string:
		return unmask(v)
	case []any:
		for i := range v {
			v[i] = withTextKeys(v[i])
		}
	}
	return v
}

// What Parse accepts an editor must not underline.
func TestSchemaAcceptsWhatParseDoes(t *testing.T) {
	s := compiled(t)
	texts := map[string]string{
		"forms": `
store: { addrs: [ "r:1" ], tls: { ca_file: ca.pem }, sentinel: { username: u }, master: m, global: { addrs: [ "g:1" ] } }
replicas: ${N}
limits: { streams: "${N}", body: ${N}KiB, buffered: 1073741824 }
expose_decision: ${YES:-true}
timeouts: { linger: 0s, total: 1h30m, silence: .5m, connect: +5s }
hosts: [ pacer.example ]
trusted_proxies: [ 10.0.0.0/8 ]
cors: { origins: [ "*" ] }
backends:
  - { name: a, url: http://a/v1, discover: { file: f.json }, prior: { 1: 52, 8: 47.5 }, headers: { x-team: a }, health_url: "off" }
  - { name: b, url: http://b/v1, discover: { kubernetes: { service: vllm, port: 8000, namespace: serving } }, prior: { points: { 1: 52 } }, max_concurrency: 1 }
  - { name: c, url: http://c/v1, kind: "${KIND:-vllm}", prior: llama-3.1-70b }
routes:
  - { models: [ m, n ], targets: [ { backend: a }, { backend: b, model: x } ], slo: { preset: llama2-70b-server, grace: 0s }, on_infeasible: [ { queue: 500ms }, { spill: o }, best_effort ] }
  - { model: "*", targets: [ { backend: c } ], class: batch, batch_share: 1, hedge: true, reserve: 0 }
  - { model: o, targets: [ { backend: c } ], slo: { min_tps: 5, attainment: 0.5 } }
keys:
  - { name: a, key: k, routes: "*", allow: { class: [ batch ], max_ttft_min: 1s } }
  - { name: b, key_sha256: ` + strings.Repeat("ab", 32) + `, routes: [ m, "*" ], limits: { concurrency: 1 } }
`,
	}
	mustParse(t, texts["forms"], variables(map[string]string{"N": "7"}))
	paths, _ := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if len(paths) < 3 {
		t.Fatalf("found %d examples, want at least 3", len(paths))
	}
	for _, path := range paths {
		data := must.Get(os.ReadFile(path))(t)
		if texts[path] = string(data); !strings.Contains(texts[path], "# yaml-language-server: $schema=../config/pacer.schema.json\n") {
			t.Errorf("%s does not name its schema", path)
		}
	}
	for i, block := range documented(t) {
		texts[fmt.Sprintf("block %d of docs/CONFIG.md", i)] = block
	}
	for name, text := range texts {
		if err := s.Validate(document(t, text)); err != nil {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// TestSchemaRefuses changes one thing in a good file at a time, and holds that
// both the schema and Parse see it.
func TestSchemaRefuses(t *testing.T) {
	const good = `listen: 127.0.0.1:8080
replicas: 1
log: { level: info }
timeouts: { connect: 5s }
limits: { body: 1MiB }
backends: [ { name: a, url: http://a/v1, kind: vllm, max_concurrency: 4, price: { input: 1 } } ]
routes: [ { model: m, targets: [ { backend: a } ], slo: { min_tps: 30, attainment: 0.9 }, on_infeasible: [ { queue: 2s }, shed ] } ]
keys: [ { name: k, key: abc, routes: [ m ] } ]
`
	s := compiled(t)
	if err := s.Validate(document(t, good)); err != nil {
		t.Fatalf("%#v", err)
	}
	mustParse(t, good, nothing)
	for _, change := range [][2]string{
		{"listen:", "lisen:"},
		{"127.0.0.1:8080", "[]"},
		{"127.0.0.1:8080", "8080"},
		{"replicas: 1", "replicas: 0"},
		{"replicas: 1", "replicas: many"},
		{"level: info", "level: loud"},
		{"connect: 5s", "connect: 5"},
		{"connect: 5s", "conect: 5s"},
		{"body: 1MiB", "body: big"},
		{"name: a,", ""},
		{"name: a,", "name: a b,"},
		{"url: http://a/v1,", ""},
		{"kind: vllm", "kind: vlm"},
		{"max_concurrency: 4", "max_concurrency: 0"},
		{"input: 1", "input: -1"},
		{"model: m,", ""},
		{"model: m,", "model: m, models: [ n ],"},
		{"model: m,", "models: [],"},
		{"[ { backend: a } ]", "[]"},
		{"{ backend: a }", "{ model: a }"},
		{"min_tps: 30", "min_tsp: 30"},
		{"attainment: 0.9", "attainment: 1"},
		{"{ queue: 2s }", "{ queue: 2s, spill: m }"},
		{"shed", "drop"},
		{"key: abc,", ""},
		{"key: abc,", "key: abc, key_file: f,"},
		{"routes: [ m ]", "routes: []"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%q is not in the file", change[0])
		}
		if s.Validate(document(t, bad)) == nil {
			t.Errorf("%s for %s: the schema accepts it", change[1], change[0])
		}
		if _, err := Parse("f", []byte(bad), nothing); err == nil {
			t.Errorf("%s for %s: Parse accepts it", change[1], change[0])
		}
	}
}

var links = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

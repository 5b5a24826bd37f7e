package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

var update = flag.Bool("update", false, "rewrite openapi.json")

// object is a JSON object of the document.
type object map[string]any

// operation is one path of the admin port and what it answers.
type operation struct {
	path, method, name, summary string
	parameters                  []object
	question                    reflect.Type // nil = it has no body
	answer                      object       // content by media type
	refusals                    map[string]string
	token                       bool // it needs the admin token
}

func query(name, text string, schema object) object {
	return object{"name": name, "in": "query", "description": text, "schema": schema}
}

// window is the parameter of that name.
func window(usual string, words ...string) object {
	return query("window", "How far back the figures reach.", object{"type": "string", "enum": words, "default": usual})
}

// operations are the paths in the order of the documentation.
func (d *document) operations() []operation {
	answer := func(of any) object {
		return object{"application/json": object{"schema": d.schema(reflect.TypeOf(of))}}
	}
	number := object{"type": "number", "minimum": 0}
	badQuery := map[string]string{"400": "The query is wrong."}
	backend := []object{{"name": "name", "in": "path", "required": true, "description": "Name of a backend.", "schema": object{"type": "string"}}}
	keyName := []object{{"name": "name", "in": "path", "required": true, "description": "Name of a key.", "schema": object{"type": "string"}}}
	needsRole := map[string]string{"401": "The admin token is missing or wrong.", "403": "The token has not the role admin, or no token is configured.", "503": "The store does not answer."}
	changesKeys := map[string]string{
		"400": "The body is wrong.", "401": needsRole["401"], "403": needsRole["403"], "404": "There is no key of that name.",
		"408": "The body came too slowly.", "409": "The key is there already, is revoked or was changed meanwhile, or no key can be handed out.",
		"413": "The body is too long.", "503": "The store does not take the change.",
	}
	operations := []operation{
		{
			path: "/api/v1/profiles", method: "get", name: "profiles", summary: "What runs at each target, and its curve",
			parameters: []object{
				{
					"name": "n", "in": "query", "style": "form", "explode": false, "description": "Levels of concurrency; absent = every one with evidence.",
					"schema": object{"type": "array", "maxItems": MaxLevels, "items": object{"type": "integer", "minimum": 1, "maximum": MaxLevel}},
				},
				query("rho", "Prompt tokens per output token, instead of the learned load.", number),
				query("prompt_tokens", "Prompt tokens of a request, instead of the learned load.", number),
			},
			answer: answer(Profiles{}), refusals: badQuery,
		},
		{
			path: "/api/v1/routes", method: "get", name: "routes", summary: "What each route promised and gave, and what is wrong",
			parameters: []object{window("start", "5m", "1h", "6h", "start")}, answer: answer(Routes{}), refusals: badQuery,
		},
		{
			path: "/api/v1/history", method: "get", name: "history", summary: "How it went, of each route or backend over time",
			parameters: []object{
				window("1h", "5m", "1h", "6h"),
				query("by", "Of each route, or of each backend.", object{"type": "string", "enum": []string{"route", "backend"}, "default": "route"}),
				query("name", "Of this one alone; absent = of all.", object{"type": "string"}),
			},
			answer: answer(History{}), refusals: badQuery,
		},
		{
			path: "/api/v1/timeline", method: "get", name: "timeline", summary: "What happened, the latest first",
			parameters: []object{query("limit", "So many at most.", object{"type": "integer", "minimum": 1, "maximum": MaxMarks, "default": MaxMarks})},
			answer:     answer(Timeline{}), refusals: badQuery,
		},
		{
			path: "/api/v1/jobs", method: "get", name: "jobs", summary: "Batch jobs that run, the oldest first",
			answer: answer(Jobs{}), refusals: map[string]string{"503": "The store does not answer."},
		},
		{
			path: "/api/v1/usage", method: "get", name: "usage", summary: "Tokens and USD, of whom and where",
			parameters: []object{
				{
					"name": "by", "in": "query", "style": "form", "explode": false, "description": "What rows are told apart by; absent = one row of all.",
					"schema": object{"type": "array", "items": object{"type": "string", "enum": []string{"key", "team", "route", "backend", "model", "tags", "hour", "day"}}},
				},
				query("from", "A time, or a day in UTC; its hour is part of it. Absent = a day before to.", object{"type": "string"}),
				query("to", "A time, or a day in UTC. Absent = now.", object{"type": "string"}),
				query("format", "How the rows are written.", object{"type": "string", "enum": []string{"json", "csv"}, "default": "json"}),
				query("limit", "So many rows at most. Absent = all rows as CSV, and as many as may be as JSON.", object{"type": "integer", "minimum": 1, "maximum": MaxUsageRows}),
				query("after", "Where the page before ended: part of its next, or of its header Link (rel=next) as CSV.", object{"type": "string"}),
			},
			answer: object{"application/json": object{"schema": d.schema(reflect.TypeFor[Usage]())}, "text/csv": object{"schema": object{"type": "string"}}},
			refusals: map[string]string{
				"400": "The query is wrong, or asks for more rows without a time than are told apart.", "503": "The store was lost or came back midway.",
			},
		},
		{
			path: "/api/v1/scorecard", method: "get", name: "scorecard", summary: "The targets of each route side by side, as live traffic found them",
			parameters: []object{
				query("model", "Of the route of this model alone; absent = of all.", object{"type": "string"}),
				query("n", "Level of concurrency to compare at; absent = n of the busiest target now.", object{"type": "integer", "minimum": 1, "maximum": MaxLevel}),
			},
			answer: answer(Scorecard{}), refusals: map[string]string{"400": "The query is wrong.", "404": "No route serves the model."},
		},
		{
			path: "/api/v1/decisions", method: "get", name: "decisions", summary: "What became of the last requests, and why",
			parameters: []object{
				query("limit", "So many at most.", object{"type": "integer", "minimum": 1, "maximum": MaxDecisions, "default": 100}),
				query("refused", "true = only what was refused.", object{"type": "boolean", "default": false}),
				query("find", "Only those whose request id, route or backend holds this.", object{"type": "string", "maxLength": MaxFind}),
			},
			answer: answer(Decisions{}), refusals: badQuery,
		},
		{
			path: "/api/v1/explain", method: "post", name: "explain", summary: "What would become of a request, without sending it",
			question: reflect.TypeFor[Question](), answer: answer(Decision{}),
			refusals: map[string]string{
				"400": "The question cannot be read.", "403": "A page of another origin asks.", "404": "No route serves the model.",
				"408": "The question came too slowly.", "413": "The question is too long.",
			},
		},
		{
			path: "/api/v1/plan", method: "post", name: "plan", summary: "What would become of the load of late, were something else; played in virtual time, one at a time",
			question: reflect.TypeFor[PlanQuestion](), answer: answer(Plan{}), token: true,
			refusals: map[string]string{
				"400": "The question cannot be read, or asks for what is not there.", "401": "The admin token is missing or wrong; where none is configured, none is asked for.", "403": "A page of another origin asks.",
				"408": "The question came too slowly.", "409": "Another plan is played.", "413": "The question is too long.", "503": "It took too long.",
			},
		},
		{path: "/api/v1/plan", method: "get", name: "planState", summary: "Whether a plan is played, and how far", answer: answer(PlanState{})},
		{
			path: "/api/v1/events", method: "get", name: "events", summary: "All of it once a second, as server-sent events",
			answer: object{"text/event-stream": object{"schema": object{
				"type": "string", "description": "The data of each event is one Event.",
				"contentMediaType": "application/json", "contentSchema": d.schema(reflect.TypeFor[Event]()),
			}}},
			parameters: []object{
				window("start", "5m", "1h", "6h", "start"),
				query("deltas", "true = after the first event only what has changed.", object{"type": "boolean", "default": false}),
			},
			refusals: map[string]string{"400": "The query is wrong.", "503": "Too many listeners."},
		},
		{
			path: "/api/v1/keys", method: "get", name: "keys", summary: "All keys, without their secrets",
			answer: answer(Keys{}), token: true, refusals: needsRole,
		},
		{
			path: "/api/v1/keys", method: "post", name: "newKey", summary: "Hand out a key; its secret is told this once",
			question: reflect.TypeFor[KeySpec](), answer: answer(NewKey{}), token: true, refusals: changesKeys,
		},
		{
			path: "/api/v1/keys/{name}", method: "delete", name: "revokeKey", summary: "Take a key back: all gateways refuse it within a second", parameters: keyName,
			answer: answer(Key{}), token: true, refusals: changesKeys,
		},
		{
			path: "/api/v1/keys/{name}/rotate", method: "post", name: "rotateKey", summary: "Give a key another secret", parameters: keyName,
			question: reflect.TypeFor[Rotation](), answer: answer(NewKey{}), token: true, refusals: changesKeys,
		},
		{
			path: "/api/v1/audit", method: "get", name: "audit", summary: "Who changed what, the latest first",
			answer: answer(Audit{}), token: true, refusals: needsRole,
		},
		{path: "/api/v1/session", method: "get", name: "session", summary: "Who asks, and whether people can sign in", answer: answer(Session{})},
		{path: "/api/openapi.json", method: "get", name: "openapi", summary: "This document", answer: object{"application/json": object{"schema": object{"type": "object"}}}},
	}
	for _, o := range []struct{ name, summary string }{
		{"drain", "Take a backend out of service for new requests"}, {"resume", "Put a backend back into service"},
	} {
		operations = append(operations, operation{
			path: "/api/v1/backends/{name}/" + o.name, method: "post", name: o.name, summary: o.summary, parameters: backend, answer: answer(Drained{}), token: true,
			refusals: map[string]string{"401": "The admin token is missing or wrong.", "403": "No admin token is configured.", "404": "There is no backend of that name."},
		})
	}
	return operations
}

// document collects the schemas of the types that it meets.
type document struct {
	comments map[string]string // by Type and Type.Field
	schemas  object
}

// schema is a type as JSON has it.
func (d *document) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[Number]() || t == reflect.TypeFor[Brief]():
		return object{"type": []string{"number", "null"}}
	case t == reflect.TypeFor[Line]():
		return object{"type": "array", "items": object{"type": []string{"number", "null"}}}
	case t == reflect.TypeFor[Encoded[Drawing]]():
		return d.schema(reflect.TypeFor[Drawing]())
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Pointer:
		return nullable(d.schema(t.Elem()))
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		if _, known := d.schemas[t.Name()]; !known {
			d.schemas[t.Name()] = nil // so that a type may hold itself
			s := object{"type": "object", "description": d.comments[t.Name()], "properties": object{}, "required": []string{}}
			d.fields(t, s)
			d.schemas[t.Name()] = s
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	panic("api: no schema for " + t.String())
}

// fields adds those of t, and of what it embeds.
func (d *document) fields(t reflect.Type, into object) {
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 || !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			d.fields(f.Type, into)
			continue
		}
		s := d.schema(f.Type)
		if words := f.Tag.Get("enum"); words != "" {
			values := []any{}
			for word := range strings.SplitSeq(words, ",") {
				values = append(values, word)
			}
			if f.Type.Kind() == reflect.Pointer {
				values = append(values, nil)
			}
			s["enum"] = values
		}
		if text, ok := d.comments[t.Name()+"."+f.Name]; ok {
			if rest, ok := strings.CutPrefix(text, f.Name+" "); ok {
				text = name + " " + rest
			}
			s["description"] = text
		}
		into["properties"].(object)[name] = s
		if !strings.Contains(options, "omitempty") {
			into["required"] = append(into["required"].([]string), name)
		}
	}
}

// nullable is s or null.
func nullable(s object) object {
	if kind, simple := s["type"].(string); simple {
		s = maps.Clone(s)
		s["type"] = []string{kind, "null"}
		return s
	}
	if _, simple := s["type"]; simple {
		return s // it is already
	}
	return object{"anyOf": []object{s, {"type": "null"}}}
}

// build is the whole document.
func build(t *testing.T) []byte {
	d := &document{comments: commentsOf(t), schemas: object{}}
	paths := object{}
	refusal := object{"application/json": object{"schema": d.schema(reflect.TypeFor[Refusal]())}}
	for _, o := range d.operations() {
		responses := object{"200": object{"description": "The answer.", "content": o.answer}}
		for status, text := range o.refusals {
			responses[status] = object{"description": text, "content": refusal}
		}
		op := object{"operationId": o.name, "summary": o.summary, "responses": responses}
		if o.parameters != nil {
			op["parameters"] = o.parameters
		}
		if o.question != nil {
			op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(o.question)}}}
		}
		if o.token {
			op["security"] = []object{{"adminToken": []string{}}}
		}
		of, _ := paths[o.path].(object)
		if of == nil {
			of = object{}
			paths[o.path] = of
		}
		of[o.method] = op
	}
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Pacer's admin API", "version": "1",
			"description": "What a gateway knows: curves, routes, decisions. Seconds are numbers, times are RFC 3339 in UTC, and what is not known is null. More fields may come.",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"paths": paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"adminToken": object{"type": "http", "scheme": "bearer", "description": "The value of admin.token in the configuration."}},
		},
	}, "", " ")
	must.Do(t, err)
	return append(text, '\n')
}

// commentsOf reads what the source says of types and fields, on one line each.
func commentsOf(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, file := range files {
		f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments))(t)
		for _, decl := range f.Decls {
			of, ok := decl.(*ast.GenDecl)
			if !ok || of.Tok != token.TYPE {
				continue
			}
			spec := of.Specs[0].(*ast.TypeSpec)
			out[spec.Name.Name] = flat(of.Doc.Text())
			body, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range body.Fields.List {
				if text := flat(field.Doc.Text()); text != "" && len(field.Names) > 0 {
					out[spec.Name.Name+"."+field.Names[0].Name] = text
				}
			}
		}
	}
	return out
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// openapi.json says what the types of this package say.
func TestOpenAPIIsOfTheseTypes(t *testing.T) {
	want := build(t)
	if *update {
		must.Do(t, os.WriteFile("openapi.json", want, 0o644))
		return
	}
	if !bytes.Equal(OpenAPI, want) {
		t.Error("openapi.json is not what the types say; go test ./api -update writes it")
	}
}

// Who reads the document alone learns what a field is: every type has a
// description.
func TestEveryTypeIsDescribed(t *testing.T) {
	var d struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]any
			}
		}
	}
	must.Do(t, json.Unmarshal(OpenAPI, &d))
	if n := len(d.Components.Schemas); n < 20 {
		t.Errorf("%d types, want at least 20", n)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if s := d.Components.Schemas[name]; len(s.Description) < 20 || len(s.Properties) == 0 {
			t.Errorf("%s: %d properties, and described as %q", name, len(s.Properties), s.Description)
		}
	}
}

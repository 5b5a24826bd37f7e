package translate

import (
	"strings"

	"github.com/tidwall/gjson"
)

// jsonSchemaOf is a schema of Google's, which is that of OpenAPI 3.0 with types in
// capitals, as JSON schema. What that has no word for is about the order of fields
// and examples.
func jsonSchemaOf(v gjson.Result) string {
	w := writer{}
	w.jsonSchema(v, 0)
	return string(w.b)
}

// maxSchema is how deep a schema is looked into. Each level is read once more by the
// one above it. What lies deeper goes up as it is.
const maxSchema = 32

func (w *writer) jsonSchema(v gjson.Result, depth int) {
	if !v.IsObject() || depth > maxSchema { // true and false are schemas, too
		w.raw(v.Raw)
		return
	}
	null := googles(v, "nullable").Bool()
	w.object(func() {
		v.ForEach(func(key, v gjson.Result) bool {
			w.schemaField(camel(key.Str), key, v, null, depth+1)
			return true
		})
	})
}

func (w *writer) schemaField(name string, key, v gjson.Result, null bool, depth int) {
	switch name {
	case "nullable", "propertyOrdering", "example":
	case "type":
		w.schemaType(v, null)
	case "format":
		if jsonFormats[v.Str] {
			w.field(name, v.Str)
		}
	case "enum":
		w.key(name)
		if raw := strings.TrimSpace(v.Raw); null && strings.HasSuffix(raw, "]") && len(v.Array()) > 0 {
			w.b = append(append(w.b, raw[:len(raw)-1]...), ",null]"...)
		} else {
			w.b = append(w.b, v.Raw...)
		}
	case "maxItems", "minItems", "maxProperties", "minProperties", "maxLength", "minLength": // 64 bits are a string in Google's JSON
		if n := v.String(); v.Type == gjson.Number || isDigits(n) {
			w.rawField(name, n)
		}
	case "items", "additionalProperties":
		w.key(name)
		w.jsonSchema(v, depth)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		w.within(name, '[', ']', func() {
			v.ForEach(func(_, v gjson.Result) bool {
				w.jsonSchema(v, depth)
				return true
			})
		})
	case "properties", "defs", "$defs":
		if name == "defs" {
			name = "$defs"
		}
		if !v.IsObject() { // it is wrong, and whoever reads it says so
			w.rawField(name, v.Raw)
			return
		}
		w.within(name, '{', '}', func() {
			v.ForEach(func(key, v gjson.Result) bool {
				w.next()
				w.b = append(append(w.b, key.Raw...), ':')
				w.jsonSchema(v, depth)
				return true
			})
		})
	case "ref":
		w.rawField("$ref", v.Raw)
	default: // required, title, description, pattern, minimum …
		w.next()
		w.b = append(append(w.b, key.Raw...), ':')
		w.b = append(w.b, v.Raw...)
	}
}

func (w *writer) schemaType(v gjson.Result, null bool) {
	typ := strings.ToLower(v.Str)
	switch {
	case v.Type != gjson.String:
		w.rawField("type", v.Raw)
	case typ == "type_unspecified" || typ == "":
	case null && typ != "null":
		w.within("type", '[', ']', func() {
			w.str(typ)
			w.str("null")
		})
	default:
		w.field("type", typ)
	}
}

// jsonFormats are those that JSON schema knows. OpenAPI's others are about how a
// number is held.
var jsonFormats = map[string]bool{
	"date-time": true, "date": true, "time": true, "duration": true, "email": true, "hostname": true, "ipv4": true, "ipv6": true, "uri": true, "uuid": true,
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

package translate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A schema that is none is still JSON where it goes up.
func TestAWrongSchemaStaysJSON(t *testing.T) {
	for _, schema := range []string{
		`{"properties":"x"}`, `{"properties":[1,"a"]}`, `{"properties":null}`, `{"$defs":7}`, `{"defs":true}`,
		`{"properties":{"a":{"properties":false}}}`, `{"items":"x","anyOf":"y","enum":"z","nullable":true,"type":3}`,
	} {
		r, err := Read(Gemini, []byte(`{"contents":[{"parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":`+schema+`}]}]}`))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		w, err := r.Write(Target{Dialect: Chat, Model: "m"})
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		if !json.Valid(w.Body) {
			t.Errorf("%s goes up as %s", schema, w.Body)
		}
	}
}

// Each level of a schema is read once more by the one above, so a deep one would cost
// its length times its depth.
func TestADeepSchemaStaysJSON(t *testing.T) {
	const deep = 200
	schema := strings.Repeat(`{"type":"ARRAY","items":`, deep) + `{"type":"STRING"}` + strings.Repeat("}", deep)
	out := jsonSchemaOf(gjson.Parse(schema))
	if !json.Valid([]byte(out)) {
		t.Fatalf("no JSON: %s", out)
	}
	if read, left := strings.Count(out, `"array"`), strings.Count(out, `"ARRAY"`); read != maxSchema+1 || read+left != deep {
		t.Errorf("%d levels were read and %d left; want %d and the rest", read, left, maxSchema+1)
	}
}

func TestCallsWithoutResultsAreBounded(t *testing.T) {
	body := func(calls int) []byte {
		one := `{"functionCall":{"name":"f","args":{}}}`
		return []byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[` + one + strings.Repeat(","+one, calls-1) + `]}]}`)
	}
	if _, err := Read(Gemini, body(maxOpenCalls)); err != nil {
		t.Errorf("%d calls: %v", maxOpenCalls, err)
	}
	var refusal *Refusal
	if _, err := Read(Gemini, body(maxOpenCalls+1)); !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "functionCalls") {
		t.Errorf("one call more: %v, want a refusal", err)
	}
}

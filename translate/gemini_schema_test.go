package translate

import (
	"encoding/json"
	"testing"
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

package api

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNumbersAreNeverNaN(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, v := range []any{Number(f), Brief(f)} {
			if got, err := json.Marshal(v); err != nil || string(got) != "null" {
				t.Errorf("%T(%g): got %s, %v, want null", v, f, got, err)
			}
		}
	}
	if got, err := json.Marshal([]any{Brief(1234567), Brief(0.000123456), Number(0.1), Line{30, 0.5, math.NaN()}, Line{}}); err != nil || string(got) != "[1.2346e+06,0.00012346,0.1,[30,0.5,null],[]]" {
		t.Errorf("got %s, %v, want [1.2346e+06,0.00012346,0.1,[30,0.5,null],[]]", got, err)
	}
}

func TestNullIsUnknown(t *testing.T) {
	var got struct{ A, B Number }
	if err := json.Unmarshal([]byte(`{"A":null,"B":1.5}`), &got); err != nil || got.A.Known() || got.B != 1.5 {
		t.Errorf("%+v, %v; want unknown and 1.5", got, err)
	}
	if text, err := json.Marshal(got); err != nil || string(text) != `{"A":null,"B":1.5}` {
		t.Errorf("%s, %v", text, err)
	}
}

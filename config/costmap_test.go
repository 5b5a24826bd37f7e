package config_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/usage"
)

// What a request costs by a list of prices is what LiteLLM's own function says of
// its own list: for each model of testdata/costmap.json, and mixes of cached,
// reasoning and sound tokens.
func TestCostMap(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/costmap.json"))(t)
	var file struct {
		Models []struct {
			Model string
			Map   json.RawMessage
			Mixes []struct {
				Input, Cached, Output, Reasoning int64
				AudioInput                       int64 `json:"audio_input"`
				AudioOutput                      int64 `json:"audio_output"`
				USD                              float64
			}
		}
	}
	must.Do(t, json.Unmarshal(data, &file))
	list := map[string]json.RawMessage{"sample_spec": []byte(`{"input_cost_per_token":"text"}`)}
	for _, m := range file.Models {
		list[m.Model] = m.Map
	}
	text := must.Get(json.Marshal(list))(t)
	prices := must.Get(config.ReadPrices(text))(t)
	if len(prices) != len(file.Models) || len(prices) < 20 {
		t.Errorf("%d models are read of %d, want all of 20 at least", len(prices), len(file.Models))
	}
	sound := 0
	for _, m := range file.Models {
		if p := prices[m.Model]; p.AudioInput > 0 && p.AudioInput != p.Input {
			sound++
		}
		for _, x := range m.Mixes {
			got := usage.Price(prices[m.Model]).Of(usage.Tokens{
				Input: x.Input, Cached: x.Cached, Output: x.Output, Reasoning: x.Reasoning, AudioInput: x.AudioInput, AudioOutput: x.AudioOutput,
			}).USD()
			if math.Abs(got-x.USD) > 1e-9+1e-9*x.USD {
				t.Errorf("%s, %+v: %.9f USD, LiteLLM says %.9f", m.Model, x, got, x.USD)
			}
		}
	}
	if sound < 6 {
		t.Errorf("%d models have a price of sound, want 6 at least", sound)
	}
}

func TestPriceFilesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "[]", "{}", `{"m":{"input_cost_per_token":-1}}`, `{"m":{"mode":"chat"}}`} {
		if p, err := config.ReadPrices([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, p)
		}
	}
}

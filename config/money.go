package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pacer-dev/pacer/internal/spelling"
)

// Team is several keys whose usage is added up.
type Team struct {
	// what keys name in `team`: 1 to 64 letters, digits, `. _ - : @ /`
	Name string `yaml:"name" is:"key_name" required:"apps"`
	// what all of its keys may spend together
	Budget Budget `yaml:"budget" unset:"none"`
}

// Budget is what a key or a team may spend; USD 0 = there is none.
type Budget struct {
	// what may be spent within each period
	USD float64 `yaml:"usd" eg:"500" required:"500"`
	// the period, in UTC; weeks begin on Monday
	Per string `yaml:"per" enum:"day,week,month" unset:"month"`
	// share of `usd` at which a [webhook](#webhooks) is told and a line is logged; 0 = none
	Warn float64 `yaml:"warn" range:"[0,1]" eg:"0.8" unset:"0.8"`
	// what becomes of requests when all is spent: `refuse`, `warn` (nothing but the word) or `{ spill: ROUTE }`
	Then Then `yaml:"then" unset:"refuse"`
}

// mostUSD bounds a budget: sums stay exact below it.
const mostUSD = 1_000_000

func (b *Budget) check(r *reader, o object) {
	if !o.has("per") {
		b.Per = "month"
	}
	if !o.has("warn") {
		b.Warn = 0.8
	}
	switch {
	case !o.fine["usd"]:
	case b.USD == 0:
		r.problem(o.at("usd"), "usd is 0; write what may be spent, such as 500, or leave the budget out")
	case b.USD > mostUSD:
		r.problem(o.at("usd"), "usd is more than a million; write a smaller budget, or leave it out")
	}
}

// Then is what becomes of requests when a budget is spent. The zero value refuses
// them.
type Then struct {
	Warn  bool   // nothing but a word
	Spill string // they go to this route; "" = they do not
}

// decode reads a word, or { spill: ROUTE }.
func (t *Then) decode(r *reader, v value) {
	if !isMapping(v) {
		var word string
		r.oneOf(v, &word, []string{"refuse", "warn"}, map[string]string{"spill": "needs its route; write { spill: ROUTE }"})
		t.Warn = word == "warn"
		return
	}
	var form struct {
		Spill string `yaml:"spill" is:"model" required:"ROUTE"`
	}
	r.object(v, &form)
	t.Spill = form.Spill
}

// Webhook is told what happens.
type Webhook struct {
	// where the message is posted to
	URL Secret `yaml:"url" is:"webhook_url" required:"https://hooks.example.com/pacer"`
	// `json`, or `slack`: a text that Slack, Mattermost and Discord's /slack take
	Format string `yaml:"format" enum:"json,slack" default:"json"`
	// signs the body: `X-Pacer-Signature: sha256=` and the HMAC-SHA256 of `X-Pacer-Timestamp`, a dot and the body, in hex
	Secret Secret `yaml:"secret" unset:"not signed"`
}

// Usage says what is told apart of what was used.
type Usage struct {
	// names of tags that requests may have: in `x-pacer-tag-NAME`, in `metadata` of the body, or, for `user`, in its field `user`; at most 8
	Tags []string `yaml:"tags" is:"tag" want:"a list of names" unset:"none"`
}

const maxTags = 8

func (u *Usage) check(r *reader, o object) {
	if len(u.Tags) > maxTags {
		r.problem(o.at("tags"), "tags has %d names; keep at most %d", len(u.Tags), maxTags)
	}
}

// Bounds on a list of prices.
const (
	maxPriceFile = 32 << 20 // bytes
	maxPrices    = 100_000
)

// Prices are what models cost, by the names that a file has for them.
type Prices map[string]Price

// decode reads the file that the value names.
func (p *Prices) decode(r *reader, v value) {
	s, ok := r.text(v)
	switch {
	case !ok:
		return
	case r.readFile == nil:
		r.problem(v.place(), "prices cannot be read from a file here; write price: for each backend")
		return
	}
	data, ok := r.content(v.place(), r.path(s.text), "prices "+quote(s.raw), "a JSON file")
	if !ok {
		return
	}
	var err error
	if *p, err = ReadPrices(data); err != nil {
		r.problem(v.place(), "the prices %s: %s", quote(s.raw), err.Error())
	}
}

// ReadPrices reads a list of prices: an object that has, by the name of a model, an
// object with the USD for ONE token in input_cost_per_token, output_cost_per_token,
// cache_read_input_token_cost, output_cost_per_reasoning_token and
// input_cost_per_audio_token and output_cost_per_audio_token, as LiteLLM publishes it. Models without a price for tokens are left out.
func ReadPrices(data []byte) (Prices, error) {
	if len(data) > maxPriceFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxPriceFile)
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(data, &raw) != nil {
		return nil, errors.New("it is no JSON object of models; see docs/CONFIG.md")
	}
	if len(raw) > maxPrices {
		return nil, fmt.Errorf("it has more than %d models", maxPrices)
	}
	out := make(Prices, len(raw))
	for name, text := range raw {
		var m struct {
			Input     float64 `json:"input_cost_per_token"`
			Output    float64 `json:"output_cost_per_token"`
			Cached    float64 `json:"cache_read_input_token_cost"`
			Reasoning float64 `json:"output_cost_per_reasoning_token"`
			AudioIn   float64 `json:"input_cost_per_audio_token"`
			AudioOut  float64 `json:"output_cost_per_audio_token"`
		}
		if json.Unmarshal(text, &m) != nil { // one that describes the others
			continue
		}
		price := Price{Input: 1e6 * m.Input, Output: 1e6 * m.Output, Cached: 1e6 * m.Cached, Reasoning: 1e6 * m.Reasoning, AudioInput: 1e6 * m.AudioIn, AudioOutput: 1e6 * m.AudioOut}
		for _, x := range []float64{price.Input, price.Output, price.Cached, price.Reasoning, price.AudioInput, price.AudioOutput} {
			if !(x >= 0 && x < 1e9) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("the price of %s is no amount", quote(name))
			}
		}
		if (price != Price{}) {
			out[name] = price
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it has no price of any model; see docs/CONFIG.md")
	}
	return out, nil
}

// PriceOf returns what the tokens of a model cost at b: its own price, else the one
// that prices has for KIND/MODEL or MODEL; false = there is none.
func (c *Config) PriceOf(b *Backend, model string) (Price, bool) {
	if b.Price != (Price{}) {
		return b.Price, true
	}
	for _, name := range []string{b.Kind + "/" + model, model} {
		if p, ok := c.Prices[name]; ok {
			return p, true
		}
	}
	return Price{}, false
}

// checkMoney looks at what budgets and keys name.
func (r *reader) checkMoney() {
	teams := r.once("team", ".teams", len(r.cfg.Teams), func(i int) string { return r.cfg.Teams[i].Name })
	for i, t := range r.cfg.Teams {
		r.spill(fmt.Sprintf(".teams[%d].budget.then", i), t.Budget.Then.Spill, "model of a route")
	}
	for i, k := range r.cfg.Keys {
		r.spill(keyAt(i, ".budget.then"), k.Budget.Then.Spill, "model of a route")
		// A team that is in no list has no budget, and its usage is added up all the same.
		near := spelling.Nearest(k.Team, slices.Collect(maps.Keys(teams)))
		if _, known := teams[k.Team]; k.Team != "" && near != "" && !known {
			r.warn(r.at(keyAt(i, ".team")), "the team %s is not in teams:; did you mean %s?", quote(k.Team), quote(near))
		}
	}
}

package translate

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// claude is what a model of Anthropic takes, by its name: generations differ in how
// they are told to think. The zero value is one that is told a budget of tokens and
// takes every temperature from 0 to 1, as up to Claude 4.5 and whatever is unknown.
type claude struct {
	adaptive bool // it is told an effort, and decides for itself how long it thinks
	always   bool // it always thinks
	disabled bool // not to think has to be said
	plain    bool // it has no temperature, top_p and top_k
	unforced bool // no tool can be forced on it
	efforts  int  // how many of claudeEfforts it knows
}

// claudeEfforts are how hard a model is told to work, from what all know to what
// the latest know.
var claudeEfforts = []string{"low", "medium", "high", "max", "xhigh"}

// claudeOf reads the name of a model, whoever hosts it:
// "us.anthropic.claude-opus-4-6-v1", "claude-sonnet-4-5@20250929".
func claudeOf(model string) (c claude) {
	_, name, found := strings.Cut(model, "claude-")
	if !found {
		return c
	}
	family, version := "", []int(nil)
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-@.:_/", r) }) {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil:
			if family == "" {
				family = word
			}
		case len(word) <= 2 && len(version) < 2: // a longer one is a date
			version = append(version, n)
		}
		if err == nil && len(word) > 2 || err != nil && len(version) > 0 {
			break
		}
	}
	version = append(version, 0, 0)
	v := 100*version[0] + version[1]
	latest := family == "fable" || family == "mythos"
	c.adaptive = v >= 406 || latest
	c.plain = v >= 407 || latest
	c.always = latest || v >= 505 && family != "haiku"
	c.disabled = v >= 500 && !c.always
	c.unforced = c.always && (v >= 505 || latest && v >= 501)
	if c.adaptive {
		c.efforts = 4
	}
	if c.plain {
		c.efforts = 5
	}
	return c
}

// effort is what c is told for t; "" = its own.
func (c claude) effort(t *Reasoning) string {
	asked := t.Effort
	switch {
	case asked == "minimal":
		return "low"
	case asked == "" && t.Budget > 0:
		asked = t.effort()
	}
	for _, e := range claudeEfforts[:c.efforts] {
		if e == asked {
			return e
		}
	}
	if asked == "xhigh" {
		return "high"
	}
	return ""
}

// thinkAdaptively writes how c is told to think, but for its effort, and reports
// whether it does.
func (w *requestWriter) thinkAdaptively(c claude) bool {
	t := &w.r.Think
	switch {
	case t.Off && c.always:
		w.lose(w.r.names.think, "the model of this backend always thinks")
		return true
	case t.Off && c.disabled:
		w.within("thinking", '{', '}', func() { w.field("type", "disabled") })
		return false
	case t.Off:
		return false
	}
	w.within("thinking", '{', '}', func() {
		w.field("type", "adaptive")
		w.field("display", map[bool]string{true: "summarized", false: "omitted"}[t.Show])
	})
	return true
}

// claudeSampling loses what a model without temperature is told of sampling. The
// temperature that all models have unasked is no loss. The caller puts the features of the request back.
func (w *requestWriter) claudeSampling(c claude) {
	if !c.plain {
		return
	}
	for _, f := range []Feature{Temperature, TopP, TopK} {
		p := &w.r.Params[f]
		if p.Name != "" && (f == TopK || gjson.Parse(p.Value).Num != 1) {
			w.lose(p.Name, "the model of this backend samples as it likes")
		}
		*p = Param{}
	}
}

package continuation

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
)

// part is where something stands in a chunk; to = 0: it is not there.
type part struct{ from, to int }

// chunk is what one event holds.
type chunk struct {
	head     [len(names)]string // as JSON
	at       [len(names)]part
	choices  bool // it has some
	role     part // the member, with its comma
	content  part // the value
	text     string
	finished bool
	usage    gjson.Result
	unfit    string // it says more than text
}

func partOf(r gjson.Result) part { return part{r.Index, r.Index + len(r.Raw)} }

// readChunk reads data, which is JSON.
func readChunk(data []byte) (c chunk) {
	root := gjson.ParseBytes(data)
	for i, name := range names {
		if v := root.Get(name); v.Exists() {
			c.head[i], c.at[i] = v.Raw, partOf(v)
		}
	}
	c.usage = root.Get("usage")
	if e := root.Get("error"); root.Get("object").String() == "error" || e.Exists() && e.Type != gjson.Null {
		c.unfit = "its backend reported an error"
		return c
	}
	list := root.Get("choices")
	if len(list.Array()) == 0 {
		return c
	}
	c.choices = true
	choice := root.Get("choices.0")
	if len(list.Array()) > 1 || choice.Get("index").Int() != 0 {
		c.unfit = "it has several choices"
		return c
	}
	if reason := choice.Get("finish_reason"); reason.Type == gjson.String {
		c.finished = true
	}
	if text := root.Get("choices.0.text"); text.Type == gjson.String {
		c.text, c.content = text.String(), partOf(text)
	}
	c.delta(root.Get("choices.0.delta"))
	return c
}

// delta reads that of a chat.
func (c *chunk) delta(delta gjson.Result) {
	before := 0 // the end of the member before
	open := false
	delta.ForEach(func(key, value gjson.Result) bool {
		if open { // with the comma behind it
			c.role.to, open = key.Index, false
		}
		switch name := key.String(); {
		case name == "role":
			c.role, open = part{key.Index, value.Index + len(value.Raw)}, true
			if before > 0 {
				c.role, open = part{before, c.role.to}, false
			}
		case name == "content" && value.Type == gjson.String:
			c.text, c.content = value.String(), partOf(value)
		case value.Type == gjson.Null, value.Raw == `""`, value.Raw == "[]", value.Raw == "{}":
		case name == "reasoning_content", name == "reasoning":
			c.unfit = "it shows its reasoning"
		default:
			c.unfit = "it says more than text: " + strconv.Quote(name[:min(len(name), 40)])
		}
		before = value.Index + len(value.Raw)
		return true
	})
}

// edits are changes of a chunk, in any order.
type edits []openai.Splice

func (e *edits) replace(p part, text string) {
	*e = append(*e, openai.Splice{From: p.from, To: p.to, Text: []byte(text)})
}

// apply returns data with the edits.
func (e edits) apply(data []byte) []byte {
	slices.SortFunc(e, func(a, b openai.Splice) int { return a.From - b.From })
	out, done := make([]byte, 0, openai.EditedLen(len(data), e)), 0
	for _, s := range e {
		out = append(append(out, data[done:s.From]...), s.Text...)
		done = s.To
	}
	return append(out, data[done:]...)
}

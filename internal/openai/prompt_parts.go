package openai

// Parts calls take with each part of the prompt, in the order in which engines put
// them together: tools, then what the system says, then the messages. They are the
// bytes of the client, so what a client writes in the same way again is the same.
// There is none of a form, of a body that was let go, and of several prompts at once.
func (r *Request) Parts(take func(part []byte)) {
	if r.body == nil || r.form || r.Sequences > 1 {
		return
	}
	for _, s := range [...]span{r.spans.tools, r.spans.system, r.spans.text} {
		if s.to > s.from {
			take(r.body[s.from:s.to])
		}
	}
	for _, s := range r.spans.items {
		take(r.body[s.from:s.to])
	}
}

// part walks over the value of a top-level key, and notes what it is of the prompt.
func (p *peeker) part(key []byte, v int) (end int) {
	at := &p.req.spans.text
	switch string(key) {
	case "messages", "input", "contents":
		if p.kind(v) == '[' {
			return p.listed(v)
		}
	case "tools":
		at = &p.req.spans.tools
	case "system", "instructions", "systemInstruction", "system_instruction":
		at = &p.req.spans.system
	case "prompt":
	default:
		return p.value(v, 1)
	}
	if end = p.value(v, 1); end > 0 && p.kind(v) != 'n' {
		*at = span{v, end}
	}
	return end
}

// maxItems bounds the messages that are noted. What is behind them is no part.
const maxItems = 4096

// listed walks over the array at v, and notes its items.
func (p *peeker) listed(v int) int {
	if !p.enter(v, 1) {
		return -1
	}
	return p.items(v, func(at int) int {
		end := p.value(at, 2)
		if end > 0 && len(p.req.spans.items) < maxItems {
			p.req.spans.items = append(p.req.spans.items, span{at, end})
		}
		return end
	})
}

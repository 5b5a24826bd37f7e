package openai

import "bytes"

// Event is what one event of a stream holds whose events have a type:
// Responses, Messages, transcriptions, speech, images. Or it is one whole
// answer of one of these endpoints. The zero value holds nothing.
type Event struct {
	// Type is the event's "type", else its name. It lies in what was read.
	Type []byte

	// Content is whether the event carries something that the model generated
	// and that no event before it carried: a delta, or the name of a tool. Bytes
	// is how long its text is; audio and images have none.
	Content bool
	Bytes   int

	Reasoning bool // some of the content is reasoning

	// HasUsage is whether the event counts what was generated. Usage is then all
	// that was counted in the stream so far.
	HasUsage bool
	Usage    Usage

	Sequence int64 // sequence_number; -1 = none
	Error    bool  // the backend reports an error
}

// Events reads the events of one stream, one after the other. The zero value is
// ready. It keeps the counts of usage: a Messages stream counts its prompt at
// the beginning and its answer at the end.
type Events struct {
	tally   tally
	scratch Chunk
}

// Parse reads data, the text of an event of this name (nil = none), into ev,
// which is overwritten, and reports whether data is one JSON object. It
// allocates nothing.
func (s *Events) Parse(name, data []byte, ev *Event) bool {
	s.scratch = Chunk{}
	p := eventParser{chunkParser: chunkParser{walker: walker{b: data, inf: true}, c: &s.scratch}, ev: Event{Type: name, Sequence: -1}, counts: s.tally}
	p.counts.found = false
	*ev = Event{Sequence: -1}
	start := p.space(0)
	if p.kind(start) != '{' {
		return false
	}
	if end := p.top(start); end < 0 || p.space(end) < len(data) {
		return false
	}
	s.tally = p.counts
	p.judge()
	*ev = p.ev
	return true
}

// eventParser gathers what could be content under each key, since the type that
// tells which of it counts may come last.
type eventParser struct {
	chunkParser
	ev     Event
	counts tally

	delta   Chunk // a delta, as a string or an object
	item    Chunk // what begins: a tool call has its name here
	blob    bool  // audio or an image
	whole   Chunk // all content of an answer that has no events
	failing bool  // an error that is an object or text
}

func (p *eventParser) top(i int) int { return p.fields(i, p.field) }

// field reads the value at v of a top-level key.
func (p *eventParser) field(key []byte, v int) (end int) {
	switch string(key) {
	case "type":
		if end = p.value(v, 1); end > v+1 && p.kind(v) == '"' {
			p.ev.Type = p.b[v+1 : end-1]
		}
		return end
	case "sequence_number":
		n := 0
		if end = p.tokens(v, 1, &n); end > 0 && isNumber(p.kind(v)) {
			p.ev.Sequence = int64(n)
		}
		return end
	case "usage":
		return p.tally(v, 1, &p.counts)
	case "response", "message":
		return p.inner(v)
	case "error":
		if end = p.value(v, 1); end > 0 {
			p.failing = saysError(p.b[v:end])
		}
		return end
	case "delta":
		return p.gather(v, &p.delta)
	case "item", "content_block":
		return p.gather(v, &p.item)
	case "output", "content", "text":
		return p.gather(v, &p.whole)
	case "choices": // vLLM's transcriptions
		end = p.choices(v)
		p.add(&p.whole)
		return end
	case "audio", "b64_json", "partial_image_b64":
		end = p.value(v, 1)
		p.blob = p.blob || p.kind(v) == '"' && end > v+2
		return end
	}
	return p.value(v, 1)
}

// inner reads the answer within an event, of which only usage counts.
func (p *eventParser) inner(i int) int {
	if p.kind(i) != '{' {
		return p.value(i, 1)
	}
	return p.fields(i, func(key []byte, v int) int {
		if string(key) == "usage" {
			return p.tally(v, 2, &p.counts)
		}
		return p.value(v, 2)
	})
}

// gather adds the content at v to sum.
func (p *eventParser) gather(v int, sum *Chunk) int {
	end := p.content(v, 1)
	p.add(sum)
	return end
}

// content counts what the model generated at v: a string, a block of content, or
// an array of blocks.
func (p *eventParser) content(v, depth int) int {
	switch p.kind(v) {
	case '"':
		return p.text(v, depth)
	case '{':
		return p.block(v, depth)
	case '[':
		if !p.enter(v, depth) {
			return -1
		}
		return p.items(v, func(at int) int { return p.content(at, depth+1) })
	}
	return p.value(v, depth)
}

// block counts the content of a delta, an item or a block of content.
func (p *eventParser) block(v, depth int) int {
	if !p.enter(v, depth) {
		return -1
	}
	return p.fields(v, func(key []byte, v int) int {
		switch string(key) {
		case "text", "refusal", "transcript", "name", "code", "partial_json", "content":
			return p.content(v, depth+1)
		case "thinking", "summary":
			before := p.c.Bytes
			end := p.content(v, depth+1)
			p.c.Reasoning = p.c.Reasoning || p.c.Bytes > before
			return end
		case "arguments", "input":
			return p.arguments(v, depth+1)
		}
		return p.value(v, depth+1)
	})
}

// add moves what was read last to sum.
func (p *eventParser) add(sum *Chunk) {
	sum.Content = sum.Content || p.c.Content
	sum.Reasoning = sum.Reasoning || p.c.Reasoning
	sum.Bytes += p.c.Bytes
	*p.c = Chunk{}
}

// judge says what of that which was gathered an event of this type is about.
func (p *eventParser) judge() {
	ev, typ := &p.ev, p.ev.Type
	var c Chunk
	switch string(typ) {
	case "response.output_item.added", "content_block_start":
		c = p.item
	case "response.shell_call_output_content.delta": // a tool's, not the model's
	case "content_block_delta":
		c = p.delta
	case "image_generation.partial_image", "image_generation.completed", "image_edit.partial_image", "image_edit.completed",
		"response.image_generation_call.partial_image", "speech.audio.delta":
		c.Content = p.blob
	case "", "message": // one whole answer
		c = p.whole
	default:
		if bytes.HasSuffix(typ, []byte(".delta")) {
			c = p.delta
			c.Reasoning = c.Content && bytes.Contains(typ, []byte("reasoning"))
		}
	}
	if string(typ) == "response.audio.delta" {
		c.Bytes = 0 // it is base64
	}
	ev.Content, ev.Bytes, ev.Reasoning = c.Content, c.Bytes, c.Reasoning
	ev.Error = p.failing || string(typ) == "error" || string(typ) == "response.failed"
	if p.counts.found && string(typ) != "message_start" {
		ev.HasUsage, ev.Usage = true, p.counts.usage()
	}
}

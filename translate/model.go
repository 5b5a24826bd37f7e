package translate

// Request is what a client asks for, in no dialect. Its strings share memory with
// a copy of the body that it was read from.
type Request struct {
	Model     string
	Stream    bool
	WantUsage bool // the client asked for the usage of its stream

	System []Part
	Turns  []Turn
	Tools  []Tool
	Choice Choice
	Format Format
	Think  Reasoning

	// Spaces are the namespaces of tools, which only responses have.
	Spaces []string

	// Asked are the fields of a request that its response says again, each as JSON on
	// one line. They share no memory with the body. Only responses have them.
	Asked []Param

	MaxTokens int // of the answer, reasoning counted; 0 = as many as the model gives
	Params    [features]Param

	// Unknown are fields that no other dialect has. What stands deeper has no value.
	Unknown []Param

	dialect Name
	names   names
}

// Turn is what one side says until the other one speaks.
type Turn struct {
	Assistant bool
	Parts     []Part
}

// PartKind is what a part of a turn is.
type PartKind uint8

// The zero value is text.
const (
	Text PartKind = iota
	Image
	File
	Audio
	Thinking // Text, and the Signature by which its author knows it again
	Redacted // thinking that only its author can read, in Data
	ToolCall // Name, ID, and Input, a JSON object
	ToolResult
)

// Part is a piece of a turn.
type Part struct {
	Kind      PartKind
	Text      string
	Media     string // type of Data: "image/png"
	Data      string // base64
	URL       string // in place of Data
	Detail    string // how closely an image is looked at; "" = as the model does
	ID        string // of a tool call, and of its result
	Name      string // of a tool or a file
	Input     string // of a tool call: a JSON object
	Signature string // of thinking, or of the thought that led to a call
	Failed    bool   // the tool's result is an error
	Cached    bool   // a cache may end here
	Parts     []Part // of a tool's result

	path string // where in the client's request it stands; "" = it can always be carried
}

// Tool is a function that the model may call.
type Tool struct {
	Name, Description string // Name begins with that of its namespace, if it has one
	Schema            string // of its input: JSON, "" = none
	Strict            bool
	Cached            bool
}

// ChoiceMode is whether a tool is to be called.
type ChoiceMode uint8

// The zero value leaves it to the target's default.
const (
	ChoiceUnsaid ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceRequired
	ChoiceNamed
)

// Choice is which tools are to be called, and how.
type Choice struct {
	Mode   ChoiceMode
	Name   string // of ChoiceNamed
	Serial bool   // one call at a time
}

// Format is what the text of the answer has to be. The zero value is any text.
type Format struct {
	JSON   bool   // one JSON object
	Schema string // of this JSON schema; "" = any
	Name   string
	Strict bool
}

// Reasoning is how much the model may think before it answers.
type Reasoning struct {
	Asked  bool
	Off    bool
	Effort string // minimal, low, medium, high, xhigh or max; "" = the model's own
	Budget int    // in tokens; 0 = none was said
	Show   bool   // thoughts are to be shown
}

// Feature is what a request may ask for and not every dialect knows.
type Feature uint8

// Those whose value is carried as it is written, where the target knows them.
const (
	Temperature Feature = iota
	TopP
	TopK
	Seed
	FrequencyPenalty
	PresencePenalty
	Stop // an array of strings
	User
	Logprobs // true
	TopLogprobs
	features
)

// whole reports whether f is a number without a fraction.
func (f Feature) whole() bool { return f == TopK || f == Seed || f == TopLogprobs }

// Param is a feature as the client has it: its name and its value in JSON. The
// zero value is one that was not asked for.
type Param struct{ Name, Value string }

// names are the client's names of what has none in the model.
type names struct{ format, think, choice, tools, maxTokens, serial, turns string }

// Usage counts the tokens of an answer. Prompt includes Cached and Written,
// Completion includes Reasoning.
type Usage struct {
	Prompt, Cached, Written, Completion, Reasoning int
}

// Finish is why an answer ends.
type Finish uint8

// The zero value is an answer that has not ended.
const (
	FinishNone Finish = iota
	FinishStop
	FinishLength
	FinishTools
	FinishSequence // one of the stop sequences
	FinishFilter   // the target would say no more
)

// EventKind is what an Event tells.
type EventKind uint8

// An answer is Begin, then blocks, then Ended, Used and Over. Failed may come at
// any time. The client is told nothing after it.
const (
	Begin       EventKind = iota // ID and Model, where known
	BlockBegin                   // of a kind: Text, Thinking, Redacted, ToolCall
	BlockDelta                   // Text of the last block that began
	BlockSigned                  // Text is the signature of the thought
	BlockEnd
	Chances // Raw is what chat has as logprobs.content, of the text before
	Ended   // Finish
	Used    // Usage: all that is counted so far
	Failed  // Failure
	Over
)

// Event is a piece of an answer. Quoted is JSON text, with its quotes; it is valid
// during the call that it is handed to.
type Event struct {
	Kind    EventKind
	Block   PartKind
	ID      []byte // quoted; nil = unknown
	Name    []byte // of a tool, quoted
	Text    []byte // quoted
	Raw     []byte // JSON; of a call of a tool, the signature of the thought that led to it; of Used, what counts beside a text
	Refusal bool   // the text says why there is no answer
	Finish  Finish
	Stop    []byte // the stop sequence, quoted; nil = unknown
	Usage   Usage
	Failure *Failure
}

// noName is that of a tool whose name the target does not say.
var noName = []byte(`""`)

// named gives a call a name, if it has none: every dialect writes one. An id that is too
// long is none.
func (e *Event) named() {
	longest := longestID
	if e.Block == ToolCall {
		longest = longestCallID
	}
	if len(e.ID) > longest {
		e.ID = nil
	}
	if e.Kind == BlockBegin && e.Block == ToolCall && e.Name == nil {
		e.Name = noName
	}
}

// Failure is an error of the target, in words.
type Failure struct {
	Status  int    // as of HTTP; 0 = unknown
	Type    string // in the target's dialect
	Message string
}

// Loss is something that the target's dialect has no place for.
type Loss struct {
	Param string // the client's name of it
	Why   string // a whole sentence
}

// Refusal is a request that cannot be read, or cannot be carried.
type Refusal struct {
	Param   string
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

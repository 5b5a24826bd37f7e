package profiles

// Source says where a count of tokens came from.
type Source uint8

// The sources of a token count, best first. Only the first three feed a curve: a caller
// whose backend tells no usage may hand in one that it estimated.
const (
	SourceNone       Source = iota
	SourceUsage             // usage in the final chunk
	SourceContinuous        // usage in every chunk
	SourceChunks            // content chunks × the target's learned tokens per chunk
	SourceEstimate          // a guess: from the text, or as many tokens as chunks
)

// counted reports whether the backend itself counted.
func (s Source) counted() bool { return s == SourceUsage || s == SourceContinuous }

// String returns the label used in metrics: usage, continuous, chunks,
// estimate, none.
func (s Source) String() string {
	switch s {
	case SourceUsage:
		return "usage"
	case SourceContinuous:
		return "continuous"
	case SourceChunks:
		return "chunks"
	case SourceEstimate:
		return "estimate"
	default:
		return "none"
	}
}

package tokens

import (
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
)

const (
	// MaxText is how much of a text is looked at, in bytes.
	MaxText = 8 << 10

	// maxPiece is how much is given to the tokenizer at once, in bytes: its time
	// grows with the square of the longest word.
	maxPiece = 512

	// bytesPerToken is that of English, for when there is no tokenizer.
	bytesPerToken = 4
)

// encoding is the tokenizer, nil if its tables could not be read.
var encoding = sync.OnceValue(func() *tiktoken.Tiktoken {
	tiktoken.SetBpeLoader(offline{})
	e, _ := tiktoken.GetEncoding(tiktoken.MODEL_O200K_BASE)
	return e
})

// Count returns how many tokens text is, from its first MaxText bytes: the rest
// is taken to be like them. It is safe for concurrent use.
func Count(text string) float64 {
	e := encoding()
	if e == nil || text == "" {
		return float64(len(text)) / bytesPerToken
	}
	head := text[:cut(text, MaxText)]
	looked := len(head)
	head = strings.ToValidUTF8(head, "?") // a run of what is no text would be one long word
	count := 0
	for len(head) > 0 {
		end := piece(head)
		count += countPiece(e, head[:end])
		head = head[end:]
		runtime.Gosched() // nobody waits for a count, and streams that run do for this processor
	}
	return float64(count) * float64(len(text)) / float64(looked)
}

// countPiece counts the tokens of a short text. It comes from outside, and the
// tokenizer is not ours: what makes it panic counts by its bytes.
func countPiece(e *tiktoken.Tiktoken, text string) (n int) {
	defer func() {
		if recover() != nil {
			n = len(text) / bytesPerToken
		}
	}()
	return len(e.EncodeOrdinary(text))
}

// piece returns how long the first piece of text is: up to maxPiece bytes, and
// where there is a space in the second half of them, up to that, which begins
// the next word.
func piece(text string) int {
	if len(text) <= maxPiece {
		return len(text)
	}
	if space := strings.LastIndexByte(text[maxPiece/2:maxPiece], ' '); space >= 0 {
		return maxPiece/2 + space
	}
	return cut(text, maxPiece)
}

// cut returns the largest length up to most at which text does not end within a
// rune.
func cut(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return most // no text at all
}

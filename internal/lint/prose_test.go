package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// mostWords is how long a sentence of the documentation may be.
const mostWords = 30

// longSentences is how many longer ones a page still has. It only falls: who shortens
// one lowers the number, and a page that is not named has none.
var longSentences = map[string]int{
	"COMPAT.md": 2, // lists of names
	"PLAN.md":   1, // a list of names
}

var (
	fenced   = regexp.MustCompile("(?s)```.*?```")
	inline   = regexp.MustCompile("`[^`\n]*`")
	links    = regexp.MustCompile(`\]\([^)]*\)`)
	sentence = regexp.MustCompile(`[.!?:;](\s|$)`)
)

// long are the sentences of a page with more than mostWords words. Code is one word,
// and tables, titles and the parts of a list stand for themselves.
func long(text string) (out []string) {
	text = links.ReplaceAllString(inline.ReplaceAllString(fenced.ReplaceAllString(text, "\n\n"), "code"), "]")
	var paragraph strings.Builder
	end := func() {
		for _, s := range sentence.Split(paragraph.String(), -1) {
			if words := strings.Fields(s); len(words) > mostWords {
				out = append(out, strings.Join(words, " "))
			}
		}
		paragraph.Reset()
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#"):
			end()
			continue
		case strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "- "):
			end()
		}
		paragraph.WriteString(line + " ")
	}
	end()
	return out
}

// Sentences of the documentation are short enough to be read once.
func TestSentencesAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := must.Get(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	decisions := must.Get(filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md")))(t)
	if len(pages) < 8 || len(decisions) < 50 {
		t.Fatalf("%d pages, %d decisions", len(pages), len(decisions))
	}
	for _, page := range slices.Concat(pages, decisions, []string{filepath.Join(root, "README.md")}) {
		name, text := filepath.Base(page), string(must.Get(os.ReadFile(page))(t))
		text = strings.ReplaceAll(text, " · ", "\n\n") // a list of links
		if found := long(text); len(found) > longSentences[name] {
			t.Errorf("%s: %d sentences of more than %d words, at most %d are allowed; the last: %s", page, len(found), mostWords, longSentences[name], found[len(found)-1])
		}
	}
}

func TestLongSentencesAreFound(t *testing.T) {
	many := strings.Repeat("word ", mostWords+1)
	for text, want := range map[string]int{
		many + "end.":                        1,
		many + "end. Short. " + many + "end": 2,
		"| " + many + " |":                   0,
		"```\n" + many + "\n```":             0,
		"`" + many + "` is code.":            0,
		"* " + many + "\n* " + many:          2,
	} {
		if got := len(long(text)); got != want {
			t.Errorf("%d long sentences in %.40q…, want %d", got, text, want)
		}
	}
}

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
	item     = regexp.MustCompile(`^([*-]|\d+\.) `)
)

// paragraphs are those of a page, each in one line. Code is one word, and tables,
// titles and the parts of a list stand for themselves.
func paragraphs(text string) (out []string) {
	text = links.ReplaceAllString(inline.ReplaceAllString(fenced.ReplaceAllString(text, "\n\n"), "code"), "]")
	var paragraph strings.Builder
	end := func() {
		if paragraph.Len() > 0 {
			out = append(out, paragraph.String())
		}
		paragraph.Reset()
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#"):
			end()
			continue
		case item.MatchString(line):
			end()
		}
		paragraph.WriteString(line + " ")
	}
	end()
	return out
}

// long are the sentences of a page with more than mostWords words.
func long(text string) (out []string) {
	for _, p := range paragraphs(text) {
		for _, s := range sentence.Split(p, -1) {
			if words := strings.Fields(s); len(words) > mostWords {
				out = append(out, strings.Join(words, " "))
			}
		}
	}
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

// mostOfAParagraph is how many words a paragraph of a page may have, and mostOfAPage
// how many those pages that each measurement once added its figures to: whoever adds
// one takes another away, or puts it where it is looked for.
const mostOfAParagraph = 110

var mostOfAPage = map[string]int{"CURVES.md": 2300, "WARM.md": 1700, "ARENA.md": 1500}

// Pages are read from their beginning, so they are no walls and no heaps.
func TestPagesAreReadable(t *testing.T) {
	root := filepath.Join("..", "..")
	pages := must.Get(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		words := 0
		for _, p := range paragraphs(string(must.Get(os.ReadFile(page))(t))) {
			n := len(strings.Fields(p))
			if words += n; n > mostOfAParagraph {
				t.Errorf("%s: a paragraph of %d words, at most %d are read; make it a list, or two: %.80s…", page, n, mostOfAParagraph, p)
			}
		}
		if most, ok := mostOfAPage[filepath.Base(page)]; ok && words > most {
			t.Errorf("%s: %d words beside its tables, at most %d: what was before belongs into a decision, and each single figure into the page's table", page, words, most)
		}
	}
}

func TestParagraphsAreTold(t *testing.T) {
	got := paragraphs("# A title\n\nOne\nand on.\n* part `of a` list\n1. first\n| a | row |\n```\nno text\n```\nlast")
	if want := []string{"One and on. ", "* part code list ", "1. first ", "last "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

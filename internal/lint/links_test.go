package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/pacer-dev/pacer/internal/must"
)

var (
	reference = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
)

// anchor is what GitHub makes of a heading.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, links.ReplaceAllString(strings.NewReplacer("`", "", "[", "").Replace(title), ""))
}

// broken are the references of a page, which stands at path, to files and headings that
// are not there.
func broken(path, text string) (out []string) {
	text = fenced.ReplaceAllString(text, "")
	for _, m := range reference.FindAllStringSubmatch(inline.ReplaceAllString(text, "code"), -1) {
		file, at, _ := strings.Cut(m[1], "#")
		if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
			continue
		}
		there := text
		if file != "" {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if info, statErr := os.Stat(filepath.Join(filepath.Dir(path), file)); statErr != nil || err != nil && !info.IsDir() {
				out = append(out, m[1])
				continue
			}
			there = fenced.ReplaceAllString(string(data), "")
		}
		titles := heading.FindAllStringSubmatch(there, -1)
		if at != "" && !slices.ContainsFunc(titles, func(h []string) bool { return anchor(h[1]) == at }) {
			out = append(out, m[1])
		}
	}
	return out
}

// pagesOf are all pages of the repository that a reader may come to.
func pagesOf(t *testing.T, root string) (pages []string) {
	t.Helper()
	for _, where := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "examples/*/*.md", "deploy/*/*.md"} {
		pages = append(pages, must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(where))))(t)...)
	}
	return pages
}

// Whoever follows a link of the documentation comes to a file and a heading that are there.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pagesOf(t, filepath.Join("..", "..")) {
		for _, ref := range broken(page, string(must.Get(os.ReadFile(page))(t))) {
			t.Errorf("%s: nothing is at %s", page, ref)
		}
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	must.Do(t, os.WriteFile(page, []byte("# A `b`, and c's\n\n```\n# no heading\n```\n"), 0o600))
	for text, want := range map[string]int{
		"[a](page.md)":                 0,
		"[a](page.md#a-b-and-cs)":      0,
		"[a](#here)\n\n## Here\n":      0,
		"[a](https://example.com/#no)": 0,
		"[a](.)":                       0,
		"`[a](code.md)`":               0,
		"[a](other.md)":                1,
		"[a](page.md#no-heading)":      1,
		"[a](#there)\n\n## Here\n":     1,
	} {
		if got := broken(page, text); len(got) != want {
			t.Errorf("%d broken links in %q, want %d: %q", len(got), text, want, got)
		}
	}
}

// Whoever looks for a decision finds it in the list by theme, in one place.
func TestDecisionsAreListed(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "decisions")
	list := string(must.Get(os.ReadFile(filepath.Join(folder, "README.md")))(t))
	for _, page := range must.Get(filepath.Glob(filepath.Join(folder, "0*.md")))(t) {
		name := filepath.Base(page)
		if n := strings.Count(list, "\n* ["+name[:4]+"]("+name+"): "); n != 1 {
			t.Errorf("%s begins %d lines of docs/decisions/README.md, want one: `* [%s](%s): …` under its theme", name, n, name[:4], name)
		}
	}
}

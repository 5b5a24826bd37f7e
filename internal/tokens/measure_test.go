package tokens

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
)

var measure = flag.Bool("measure", false, "print how far estimates of prompts are off")

// TestEstimatesOfPrompts prints, for prompts of about 2 KB in several languages
// (the translations that the system's own programs come with) and kinds of
// text, how far off in % are: the estimate from the size of the body; the same
// as a route scales it once usage has told, as gateway does; o200k as an
// estimate of a backend whose tokenizer is cl100k; and that scaled as well.
func TestEstimatesOfPrompts(t *testing.T) {
	if !*measure {
		t.Skip("go test -run TestEstimatesOfPrompts -v ./internal/tokens -measure")
	}
	e := encoding()
	tiktoken.SetBpeLoader(loader.NewOfflineLoader()) // the program has one table
	defer tiktoken.SetBpeLoader(offline{})
	other := must.Get(tiktoken.GetEncoding(tiktoken.MODEL_CL100K_BASE))(t)
	const promptPrior = 1000 // of gateway
	t.Logf("%-14s %7s %10s %10s %10s %10s", "text", "B/token", "bytes", "scaled", "o200k", "scaled")
	for _, name := range []string{"de", "fr", "es", "ru", "uk", "tr", "zh_CN", "ja", "ko", "vi", "ar", "hi", "english", "go", "table"} {
		prompts := promptsOf(name)
		if len(prompts) < 6 {
			t.Logf("%-14s not on this system", name)
			continue
		}
		var off [4][]float64
		var told, guessed, otherTold, otherGuessed, size, tokens float64
		for _, p := range prompts {
			body, _ := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]string{"role": "user", "content": p}}})
			n, m := float64(len(e.EncodeOrdinary(p))), float64(len(other.EncodeOrdinary(p)))
			bytes := float64(openai.EstimatePromptTokens(body))
			off[0] = append(off[0], math.Abs(bytes/n-1))
			off[1] = append(off[1], math.Abs(bytes*(told+promptPrior)/(guessed+promptPrior)/n-1))
			off[2] = append(off[2], math.Abs(n/m-1))
			off[3] = append(off[3], math.Abs(n*(otherTold+promptPrior)/(otherGuessed+promptPrior)/m-1))
			told, guessed, otherTold, otherGuessed = told+n, guessed+bytes, otherTold+m, otherGuessed+n
			size, tokens = size+float64(len(p)), tokens+n
		}
		median, p90 := [4]float64{}, [4]float64{}
		for i := range off {
			slices.Sort(off[i])
			median[i], p90[i] = 100*off[i][len(off[i])/2], 100*off[i][len(off[i])*9/10]
		}
		t.Logf("%-14s %7.2f %5.0f/%-4.0f %5.0f/%-4.0f %5.0f/%-4.0f %5.0f/%-4.0f", name, size/tokens,
			median[0], p90[0], median[1], p90[1], median[2], p90[2], median[3], p90[3])
	}
}

// promptsOf returns up to 60 texts of at least 1,500 bytes.
func promptsOf(name string) (prompts []string) {
	var parts []string
	switch name {
	case "english":
		parts = paragraphs("/usr/share/common-licenses/*")
	case "go":
		parts = paragraphs("../../gateway/*.go")
	case "table":
		parts = paragraphs("../presets/*.csv")
	default:
		files, _ := filepath.Glob("/usr/share/locale/" + name + "*/LC_MESSAGES/*.mo")
		for _, f := range files {
			parts = append(parts, translations(f)...)
		}
	}
	var b strings.Builder
	for _, p := range parts {
		if b.WriteString(p + "\n"); b.Len() >= 1500 {
			prompts = append(prompts, b.String())
			b.Reset()
		}
		if len(prompts) == 60 {
			break
		}
	}
	return prompts
}

func paragraphs(glob string) (parts []string) {
	files, _ := filepath.Glob(glob)
	for _, f := range files {
		text, _ := os.ReadFile(f)
		parts = append(parts, strings.Split(string(text), "\n")...)
	}
	return parts
}

// translations reads a compiled catalog of gettext: the longer messages.
func translations(path string) (messages []string) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 28 || binary.LittleEndian.Uint32(b) != 0x950412de {
		return nil
	}
	word := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	for i, at := 0, word(16); i < word(8); i, at = i+1, at+8 {
		if n, from := word(at), word(at+4); n > 40 && from+n <= len(b) {
			messages = append(messages, strings.ReplaceAll(string(b[from:from+n]), "\x00", " "))
		}
	}
	return messages
}

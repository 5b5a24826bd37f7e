package openai

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

func encoded(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestEstimatePromptTokens(t *testing.T) {
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1000)
	image := `"data:image/png;base64,` + encoded(1_000_000) + `"`
	wrapped := strings.ReplaceAll(encoded(30_000), "/", `\/`)
	for _, tt := range []struct {
		name, body string
		low, high  int
	}{
		{"empty", "", 1, 1},
		{"small", `{"model":"m","messages":[{"role":"user","content":"Say hello to the world, please."}]}`, 1, 20},
		{"prose", `{"model":"m","messages":[{"role":"user","content":"` + prose + `"}]}`, 9_000, 12_500},
		{"image", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":` + image + `}}]}]}`, 300, 1_600},
		{"two images and prose", `{"content":[` + image + `, "` + prose + `", ` + image + `]}`, 9_500, 14_000},
		{"escaped slashes", `{"data":"` + wrapped + `"}`, 300, 1_600},
		{"CJK", `{"content":"` + strings.Repeat("人工智能正在改变世界", 1000) + `"}`, 5_000, 10_000},
		{"token ids", `{"prompt":[` + strings.Repeat("12345,", 9_999) + `1]}`, 9_000, 16_000},
	} {
		if got := EstimatePromptTokens([]byte(tt.body)); got < tt.low || got > tt.high {
			t.Errorf("%s: %d tokens, want %d to %d", tt.name, got, tt.low, tt.high)
		}
	}
}

// Budget: 1 GB/s and no allocation.
func BenchmarkEstimatePromptTokens(b *testing.B) {
	body := chatBody(2 << 20)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		EstimatePromptTokens(body)
	}
}

// Budget: 1 GB/s and no allocation.
func BenchmarkEstimateImage(b *testing.B) {
	body := []byte(`{"url":"data:image/png;base64,` + encoded(2<<20) + `"}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		EstimatePromptTokens(body)
	}
}

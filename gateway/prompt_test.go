package gateway

import (
	"bytes"
	"testing"
)

func TestFilesInABodyAreNotText(t *testing.T) {
	picture := bytes.Repeat([]byte("A"), 1<<20)
	body := append([]byte(`{"a":"data:image/png;base64,`), picture...)
	body = append(body, `","b":"data:image/png;base64,AAAA"}`...)
	text, files := measureBody(body)
	if want := len(body) - len(picture) - 4; text != want || files != 2 {
		t.Errorf("got %d bytes of text and %d files, want %d and 2", text, files, want)
	}
	if text, files := measureBody([]byte(`x;base64,AAAA`)); text != 9 || files != 1 {
		t.Errorf("unterminated: got %d and %d, want 9 and 1", text, files)
	}
}

func TestPromptSizesLearnTheRatio(t *testing.T) {
	var p promptSizes
	if got := p.estimate(4000, 0); got != 1000 {
		t.Errorf("before any evidence 4000 bytes are %d tokens, want 1000", got)
	}
	for range 2000 {
		p.learn(10_000, 0, 1000)
	}
	if got := p.estimate(10_000, 0); got < 995 || got > 1010 {
		t.Errorf("after 2000 requests of 10 bytes a token 10000 bytes are %d tokens, want 1000", got)
	}
	before := p.estimate(10_000, 0)
	p.learn(10_000, 0, 20_000) // more tokens than bytes
	p.learn(10_000, 1, 9000)   // with a file
	p.learn(0, 0, 5)
	if got := p.estimate(10_000, 0); got != before {
		t.Errorf("nonsense moved the estimate from %d to %d", before, got)
	}
	if got := p.estimate(1<<40, 1<<20); got != maxPromptTokens {
		t.Errorf("a huge body is %d tokens, want it bounded to %d", got, maxPromptTokens)
	}
}

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestSecretsNeverPrint(t *testing.T) {
	type holder struct {
		Value   Secret
		Pointer *Secret
		Map     map[string]Secret
	}
	s := Secret("hunter2")
	h := holder{s, &s, map[string]Secret{"a": s}}
	var out bytes.Buffer
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %t %10s %f %c %U") {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", []Secret{s})
		fmt.Fprintf(&out, verb+"\n", h.Map)
	}
	fmt.Fprintf(&out, "%v %+v %#v\n", h, h, h)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "s", s, "h", h)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "s", s, "h", h)
	must.Do(t, json.NewEncoder(&out).Encode(h))
	for _, form := range []string{"hunter2", fmt.Sprintf("%x", "hunter2"), fmt.Sprintf("%X", "hunter2")} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret was printed as %q:\n%s", form, out.String())
		}
	}
	if got := s.Reveal(); got != "hunter2" {
		t.Errorf("Reveal() = %q, want hunter2", got)
	}
}

package statefile

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// What is saved is read again, and what is too much to be read is not saved: neither by
// its bytes in the file nor by those that are packed in it.
func TestWhatIsSavedCanBeRead(t *testing.T) {
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(rand.New(rand.NewPCG(1, uint64(i))).Uint32())
	}
	for name, large := range map[string]string{"packed": string(noise), "plain": strings.Repeat("x", 20_000)} {
		f := File{Name: "x.bin", Form: "x 1\n", Most: 2000, Plain: 10_000}
		dir := t.TempDir()
		must.Do(t, f.Save(dir, "small"))
		if err := f.Save(dir, large); err == nil || !strings.Contains(err.Error(), "times as much as x.bin holds") {
			t.Errorf("%s: saved what cannot be read: %v", name, err)
		}
		var got string
		if kept, err := f.Load(dir, &got); !kept || err != nil || got != "small" {
			t.Errorf("%s: %v, %q, %v; want what was saved before", name, kept, got, err)
		}
	}
}

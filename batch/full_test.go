package batch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/batch"
)

// The lines of a file that begins with a byte order mark are those that were checked.
func TestOutputOfAFileWithAByteOrderMark(t *testing.T) {
	s := batch.NewMemory(1<<20, time.Hour)
	add(t, s, "a", "\xEF\xBB\xBF"+input(2), time.Hour)
	j, err := s.Cancel(t.Context(), "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := batch.WriteOutput(t.Context(), s, j, false, &out); err != nil || !strings.Contains(out.String(), `"custom_id":"c0"`) {
		t.Errorf("%v:\n%s", err, &out)
	}
}

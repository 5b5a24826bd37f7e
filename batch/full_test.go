package batch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/must"
)

// The lines of a file that begins with a byte order mark are those that were checked.
func TestOutputOfAFileWithAByteOrderMark(t *testing.T) {
	s := batch.NewMemory(1<<20, time.Hour)
	add(t, s, "a", "\xEF\xBB\xBF"+input(2), time.Hour)
	j := must.Get(s.Cancel(t.Context(), "a", time.Now()))(t)
	var out strings.Builder
	if err := batch.WriteOutput(t.Context(), s, j, false, &out); err != nil || !strings.Contains(out.String(), `"custom_id":"c0"`) {
		t.Errorf("%v:\n%s", err, &out)
	}
}

package engines

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/timings"
)

var recordTo = flag.String("record", "", "folder to write down in what the engines sent when, for internal/accuracy")

// recording is what users of one engine saw, by the parts of a run.
type recording struct {
	name string
	all  []timings.Answer
}

func record(t *testing.T, name string) *recording {
	t.Helper()
	return &recording{name: name}
}

// add adds the answers of one part that came whole.
func (r *recording) add(part string, all []answer) {
	for _, a := range whole(all) {
		a.Part = part
		r.all = append(r.all, a)
	}
}

// alone returns the answers of users who had the engine for themselves.
func (r *recording) alone() (out []timings.Answer) {
	for _, a := range r.all {
		if strings.HasSuffix(a.Part, " 1 users") {
			out = append(out, a)
		}
	}
	return out
}

// write writes the recording, where one is wanted.
func (r *recording) write(t *testing.T) {
	t.Helper()
	if *recordTo == "" {
		return
	}
	slices.SortStableFunc(r.all, func(a, b timings.Answer) int { return cmp.Compare(a.Sent, b.Sent) })
	f := must.Get(os.Create(filepath.Join(*recordTo, r.name+".csv.gz")))(t)
	defer f.Close()
	must.Do(t, timings.Write(f, r.all))
}

package disk

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/statefile"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// gateway is a history that begins at now.
func gateway(now time.Time) (*history.Ring, *history.Watch) {
	r := history.NewRing(now)
	r.Configure([]string{"chat"}, []string{"a"})
	return r, history.NewWatch(r)
}

// serve counts a request a second for so long.
func serve(r *history.Ring, now time.Time, d time.Duration, result history.Result) time.Time {
	for end := now.Add(d); now.Before(end); now = now.Add(time.Second) {
		r.Route("chat").Add(history.Outcome{Result: result, TPS: 40, TTFT: 0.2})
		r.Advance(now)
	}
	return now
}

// What a gateway knew of the last hours, the next one knows: all of it but what
// passed between them.
func TestARestartKeepsTheHistory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "Load")
	if p, err := Load(dir); p != nil || err != nil {
		t.Fatalf("of nothing: %v, %v", p, err)
	}
	r, w := gateway(noon)
	w.Note(noon, "start", "started")
	now := serve(r, noon, 2*time.Hour, history.Met)
	now = serve(r, now, 95*time.Second, history.Shed)
	w.Tick(now, history.Snapshot{Store: history.Store{Shared: true}})
	w.Tick(now.Add(time.Second), history.Snapshot{Store: history.Store{Shared: true}})
	must.Get(Save(dir, r.Past(now, w)))(t)

	later := now.Add(3 * time.Second) // within the minute
	past := must.Get(Load(dir))(t)
	r2, w2 := gateway(later)
	r2.Restore(w2, past)
	for _, window := range []history.Window{history.FiveMinutes, history.Hour, history.SixHours} {
		before, after := r.Figures(now, r.Route("chat"), window), r2.Figures(later, r2.Route("chat"), window)
		if !reflect.DeepEqual(before.Results, after.Results) || before.TPS.Quantile(0.5) != after.TPS.Quantile(0.5) {
			t.Errorf("%s: %v before, and %v after", window, before.Results, after.Results)
		}
	}
	if got := r2.Reach(later, history.SixHours); got < 2*time.Hour {
		t.Errorf("six hours reach back %s, want two hours", got)
	}
	if rates := r2.Recent(later, r2.Route("chat")); math.Abs(rates.Offered()-1) > 0.3 {
		t.Errorf("%.2f per second of late, want 1", rates.Offered())
	}
	// What was counted before belongs to the minute, and not to the start.
	if f := r2.Figures(later, r2.Route("chat"), history.Start); f.Offered() > 0 || f.TPS.Count() > 0 {
		t.Errorf("since the start of this one %d, %d of which have a speed, want none", f.Offered(), f.TPS.Count())
	}
	end := serve(r2, later, 2*time.Minute, history.Met)
	if f := r2.Figures(end, r2.Route("chat"), history.Start); f.Offered() != 120 || f.TPS.Count() != 120 || f.Results[history.Shed] > 0 {
		t.Errorf("after two minutes since the start %v, %d of which have a speed, want 120 that met", f.Results, f.TPS.Count())
	}
	marks, _ := w2.Marks(0, 10)
	if len(marks) != 2 || marks[0].Kind != "store" || !marks[0].Ended.Equal(now) {
		t.Errorf("the timeline has %+v; what lasted ended when it was saved", marks)
	}
}

// A file that is cut, changed, foreign or of another version is moved aside, and the
// next one is kept.
func TestWhatCannotBeReadIsMovedAside(t *testing.T) {
	r, w := gateway(noon)
	good, _, err := file.Pack(r.Past(serve(r, noon, time.Minute, history.Met), w))
	must.Do(t, err)
	changed := append([]byte(nil), good...)
	changed[len(changed)/2] ^= 1
	other := append([]byte(nil), good...)
	other[len(file.Form)-2]++
	for what, data := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "cut early": good[:len(file.Form)+2], "changed": changed,
		"of another version": other, "foreign": []byte("{}"),
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, file.Name)
		must.Do(t, os.WriteFile(path, data, 0o600))
		past, err := Load(dir)
		if past != nil || err == nil || !strings.Contains(err.Error(), path+".unreadable") {
			t.Errorf("%s: %v, %v", what, past, err)
			continue
		}
		if kept, err := os.ReadFile(path + ".unreadable"); err != nil || string(kept) != string(data) {
			t.Errorf("%s: aside are %d bytes, %v", what, len(kept), err)
		}
		if _, err := Save(dir, r.Past(noon, w)); err != nil {
			t.Errorf("%s: afterwards: %v", what, err)
		}
		if past, err := Load(dir); past == nil || err != nil {
			t.Errorf("%s: the next one is %v, %v", what, past, err)
		}
	}
}

// Where nothing can be written, what is there stays whole, and nothing is left
// behind.
func TestADiskThatTakesNothing(t *testing.T) {
	r, w := gateway(noon)
	dir := t.TempDir()
	must.Get(Save(dir, r.Past(noon, w)))(t)
	if _, err := Save(filepath.Join(dir, "gone"), r.Past(noon, w)); err == nil {
		t.Error("a directory that is not there takes a file")
	}
	os.WriteFile(filepath.Join(dir, file.Name+".1.new"), []byte("half"), 0o600)
	must.Get(Load(dir))(t)
	files, _ := os.ReadDir(dir)
	if len(files) != 1 || files[0].Name() != file.Name {
		t.Errorf("the directory has %v", files)
	}
}

// Bytes from elsewhere with a sum that is right end nothing.
func FuzzDecode(f *testing.F) {
	r, w := gateway(noon)
	good, _, err := file.Pack(r.Past(noon, w))
	must.Do(f, err)
	z := must.Get(gzip.NewReader(bytes.NewReader(good[len(file.Form):])))(f)
	f.Add(must.Get(io.ReadAll(z))(f))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, plain []byte) {
		var data bytes.Buffer
		data.WriteString(file.Form)
		z := gzip.NewWriter(&data)
		z.Write(plain)
		must.Do(t, z.Close())
		var p history.Past
		if err := file.Unpack(data.Bytes(), &p); err == nil {
			r, w := gateway(noon)
			r.Restore(w, &p)
			r.Advance(noon.Add(time.Minute))
			r.Figures(noon.Add(time.Minute), r.Route("chat"), history.Hour)
			r.Figures(noon.Add(time.Minute), r.Route("chat"), history.Start)
			marks, _ := w.Marks(0, history.MaxMarks)
			for _, m := range marks {
				_ = m.Of.String()
			}
		}
	})
}

// A history that is too large loses its oldest steps, and not all of it: packed or
// not, it is never more than is read again.
func TestALargeHistoryKeepsItsLatest(t *testing.T) {
	r, w := gateway(noon)
	now := serve(r, noon, 5*time.Hour, history.Met)
	p := r.Past(now, w)
	whole, kept, err := fitting(&file, p)
	if err != nil || kept != 1 {
		t.Fatalf("kept %v, %v; want all of a small one", kept, err)
	}
	z := must.Get(gzip.NewReader(bytes.NewReader(whole[len(file.Form):])))(t)
	plain := must.Get(io.ReadAll(z))(t)
	small, plainer := file, file
	small.Most, plainer.Plain = int64(len(whole)/3), int64(len(plain)/3)
	for _, f := range []statefile.File{small, plainer} {
		data, kept, err := fitting(&f, p)
		if err != nil || int64(len(data)) > f.Most || kept > 0.34 || kept < 0.1 {
			t.Fatalf("of %d bytes, %d may stay: %d and a share of %.2f do; %v", len(whole), f.Most, len(data), kept, err)
		}
		var past history.Past
		must.Do(t, f.Unpack(data, &past))
		after, watch := gateway(now)
		after.Restore(watch, &past)
		all, other := gateway(now)
		all.Restore(other, p)
		was, is := all.Figures(now, all.Route("chat"), history.FiveMinutes), after.Figures(now, after.Route("chat"), history.FiveMinutes)
		if was.Results != is.Results || is.Offered() < 250 {
			t.Errorf("of the last five minutes %v are left, of %v", is.Results, was.Results)
		}
		if reach := after.Reach(now, history.SixHours); reach > 3*time.Hour || reach < 20*time.Minute {
			t.Errorf("it reaches back %v", reach)
		}
	}
}

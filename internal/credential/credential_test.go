package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// maker is a source that counts how often it makes a value.
func maker(life time.Duration, wrong *error) (Source, *int) {
	made := 0
	return newKept("the maker", func(context.Context) (Value, error) {
		time.Sleep(time.Second)
		if wrong != nil && *wrong != nil {
			made++
			return Value{}, *wrong
		}
		made++
		v := Value{Secret: fmt.Sprint("s", made)}
		if life > 0 {
			v.Expires = time.Now().Add(life)
		}
		return v, nil
	}), &made
}

// A value is made once for all who ask, and again a little before it expires, in
// the time of one request.
func TestAValueIsKeptUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := maker(100*time.Second, nil)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if v, err := s.Get(t.Context()); err != nil || v.Secret != "s1" {
					t.Errorf("got %q, %v", v.Secret, err)
				}
			})
		}
		all.Wait()
		time.Sleep(79 * time.Second)
		begin := time.Now()
		if s.Get(t.Context()); *made != 1 || time.Since(begin) != 0 {
			t.Errorf("made %d times within four fifths of its life, want once", *made)
		}
		time.Sleep(time.Second)
		waited := 0
		var mu sync.Mutex
		for range 50 {
			all.Go(func() {
				begin := time.Now()
				_, err := s.Get(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if time.Since(begin) > 0 {
					waited++
				}
			})
		}
		all.Wait()
		if *made != 2 || waited != 1 {
			t.Errorf("made %d times, and %d of 50 waited; want 2 and one", *made, waited)
		}
	})
}

// What cannot be made is tried again after five seconds; the last value is good
// until it expires.
func TestWhatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := errors.New("no")
		s, made := maker(100*time.Second, &wrong)
		for range 10 {
			if _, err := s.Get(t.Context()); !errors.Is(err, wrong) {
				t.Errorf("got %v", err)
			}
		}
		if *made != 1 {
			t.Errorf("tried %d times at once, want once", *made)
		}
		time.Sleep(againAfter)
		wrong = nil
		if v, err := s.Get(t.Context()); err != nil || v.Secret != "s2" {
			t.Errorf("after a while %q, %v", v.Secret, err)
		}
		wrong = errors.New("again")
		for good := time.Now().Add(95 * time.Second); time.Now().Before(good); {
			if v, err := s.Get(t.Context()); err != nil || v.Secret != "s2" {
				t.Fatalf("while it is good: %q, %v", v.Secret, err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if v, err := s.Get(t.Context()); !errors.Is(err, wrong) {
			t.Errorf("when it has expired: %q, %v", v.Secret, err)
		}
		if *made > 12 {
			t.Errorf("tried %d times, want one each 5 s", *made)
		}
	})
}

// Who leaves while a value is made harms nobody who stays.
func TestWhoWaitsMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := maker(0, nil)
		go s.Get(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		if v, err := s.Get(t.Context()); err != nil || v.Secret != "s1" || *made != 1 {
			t.Errorf("got %q, %v after %d times", v.Secret, err, *made)
		}
	})
}

// A value that comes too late for who asked is for the next one. The first is told what
// was slow: a request that is sent at its deadline would say that of the backend.
func TestWhatComesTooLateIsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := maker(0, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if v, err := s.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "the maker: ") {
			t.Errorf("got %q, %v, want an error that names the maker", v.Secret, err)
		}
		begin := time.Now()
		if v, err := s.Get(t.Context()); err != nil || v.Secret != "s1" || *made != 1 || time.Since(begin) != 0 {
			t.Errorf("the next one got %q, %v after %d times and %v", v.Secret, err, *made, time.Since(begin))
		}
	})
}

// A value that a backend refused is made anew, unless it was just made.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, made := maker(0, nil)
		v, _ := s.Get(t.Context())
		if s.Refused(v) {
			t.Error("it is just made, and would be made again")
		}
		time.Sleep(againAfter)
		for range 2 {
			if !s.Refused(v) {
				t.Error("it would not be made again")
			}
		}
		if v, _ := s.Get(t.Context()); v.Secret != "s2" || *made != 2 {
			t.Errorf("got %q after %d times", v.Secret, *made)
		}
		if !s.Refused(v) {
			t.Error("there is another one, which it does not say")
		}
		if v, _ := s.Get(t.Context()); v.Secret != "s2" {
			t.Errorf("got %q: what was refused was an older one", v.Secret)
		}
	})
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path+".new", []byte(text), 0o600))
		must.Do(t, os.Rename(path+".new", path))
	}
	s := File(path)
	get := func() (string, error) {
		s.(*file).looked = time.Time{} // a second has passed
		v, err := s.Get(t.Context())
		return v.Secret, err
	}
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without a file: %v", err)
	}
	write("one\n")
	if got, err := get(); got != "one" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	write("two\r\n")
	if got, err := get(); got != "two" || err != nil {
		t.Errorf("when it has changed: %q, %v", got, err)
	}
	for _, bad := range []string{"", " \n", "a\nb", "a b", strings.Repeat("x", 17<<10), "a\x00b"} {
		write(bad)
		if got, err := get(); got != "two" || err != nil {
			t.Errorf("after a bad one: %q, %v; want the last good one", got, err)
		}
		if _, err := ReadFile(path); err == nil || len(bad) > 3 && strings.Contains(err.Error(), bad) {
			t.Errorf("%.10q is taken, or told: %v", bad, err)
		}
	}
	must.Do(t, os.Remove(path))
	if got, err := get(); got != "two" || err != nil {
		t.Errorf("when it is gone: %q, %v", got, err)
	}
	write("three")
	if !s.Refused(Value{Secret: "two"}) {
		t.Error("the file has another one, which it does not say")
	}
	if got, _ := get(); got != "three" || s.Secrets()[0] != "three" {
		t.Errorf("got %q", got)
	}
	must.Do(t, os.MkdirAll(path+".d", 0o700))
	if _, err := ReadFile(path + ".d"); err == nil {
		t.Error("a folder is read as a secret")
	}
}

func TestReadOutput(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for text, want := range map[string]Value{
		"sk-1\n":        {Secret: "sk-1", Expires: at(time.Minute)},
		`{"token":"t"}`: {Secret: "t", Token: true, Expires: at(time.Minute)},
		`{"access_token":"t","expires_in":3599,"token_type":"Bearer"}`:                                  {Secret: "t", Token: true, Expires: at(3599 * time.Second)},
		`{"accessToken":"t","expires_on":1767272400,"expiresOn":"local"}`:                               {Secret: "t", Token: true, Expires: at(time.Hour)},
		`{"accessToken":"t","expires_on":"1767272400"}`:                                                 {Secret: "t", Token: true, Expires: at(time.Hour)},
		`{"token":"t","expires_at":"2026-01-01T13:00:00+00:00"}`:                                        {Secret: "t", Token: true, Expires: at(time.Hour)},
		`{"kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"2026-01-01T13:00:00Z"}}`: {Secret: "t", Token: true, Expires: at(time.Hour)},
	} {
		got, err := readOutput(now, []byte(text), time.Minute)
		if err != nil || got.Secret != want.Secret || got.Token != want.Token || !got.Expires.Equal(want.Expires) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	got, err := readOutput(now, []byte(`{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"secret","SessionToken":"st","Expiration":"2026-01-01T13:00:00Z"}`), time.Minute)
	if err != nil || *got.AWS != (AWS{"AKID", "secret", "st"}) || !got.Expires.Equal(at(time.Hour)) {
		t.Errorf("credential_process: %+v, %v", got, err)
	}
	for _, text := range []string{
		"", "\n", "two words", "two\nlines", "{", `{"x":1}`, `{"token":""}`, `{"token":7}`, `{"token":"a b"}`, `{"token":"t","expires_in":"soon"}`, `{"token":"t","expires_in":-1}`,
		`{"token":"t","expires_at":"tomorrow"}`, `{"AccessKeyId":"a"}`, "tok\x1b[31m", strings.Repeat("x", 17<<10),
	} {
		v, err := readOutput(now, []byte(text), time.Minute)
		if err == nil {
			t.Errorf("%.40q is taken as %+v", text, v)
		} else if len(text) > 4 && strings.Contains(err.Error(), text) {
			t.Errorf("%.40q is repeated: %v", text, err)
		}
	}
}

func FuzzReadOutput(f *testing.F) {
	for _, seed := range []string{"sk-1\n", `{"token":"t","expires_in":5}`, `{"AccessKeyId":"a","SecretAccessKey":"b"}`, "{", `{"accessToken":"t","expires_on":"7"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := readOutput(time.Unix(1767268800, 0), text, time.Minute)
		if err == nil && v.AWS == nil && usable(v.Secret) != nil {
			t.Fatalf("%q gives %q, which cannot be sent", text, v.Secret)
		}
	})
}

// Commands that work, fail, hang, print too much or leave a child behind.
func TestCommand(t *testing.T) {
	run := func(timeout time.Duration, script string) (Value, error) {
		return Command(CommandOptions{Args: []string{"/bin/sh", "-c", script}, Timeout: timeout}).Get(t.Context())
	}
	if v, err := run(time.Minute, "echo secret-key; echo noise >&2"); err != nil || v.Secret != "secret-key" || time.Until(v.Expires) > defaultLife {
		t.Errorf("got %+v, %v", v, err)
	}
	for script, want := range map[string]string{
		"echo secret-key; exit 3":            "exit status 3",
		"cat /dev/zero":                      "64 KiB",
		"echo two words":                     "line break",
		"true":                               "empty",
		"echo '{\"secret-key\": 1}'":         "no token",
		"echo secret-key >&2; kill -9 $$":    "killed",
		"echo secret-key; sleep 60 & exit 0": "open",
	} {
		v, err := run(20*time.Second, script)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-key") {
			t.Errorf("%s: %+v, %v; want %q", script, v, err, want)
		}
	}
	if _, err := run(50*time.Millisecond, "echo secret-key; exec sleep 60"); !errors.Is(err, errSlow) {
		t.Errorf("one that hangs: %v", err)
	}
	if _, err := Command(CommandOptions{Args: []string{"/nowhere/at/all"}}).Get(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
}

// The published test vectors of AWS's signature, version 4.
func TestSign(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	keys := &AWS{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	for method, want := range map[string]string{
		"GET":  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", // get-vanilla
		"POST": "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", // post-vanilla
	} {
		r, _ := http.NewRequestWithContext(t.Context(), method, "https://example.amazonaws.com/", nil)
		r.Header["Idempotency-Key"] = []string{}
		must.Do(t, Sign(t.Context(), r, keys, empty, "service", "us-east-1", now))
		got := r.Header.Get("Authorization")
		if !strings.HasSuffix(got, "SignedHeaders=host;x-amz-date, Signature="+want) || r.Header["Idempotency-Key"] == nil {
			t.Errorf("%s: %s, want the signature %s", method, got, want)
		}
	}
}

// An answer to the secret before this one may come when there is another already.
func TestTheSecretBeforeIsOneStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := maker(time.Minute, nil)
		path := filepath.Join(t.TempDir(), "key")
		for name, s := range map[string]Source{"made": s, "in a file": File(path)} {
			var before string
			for i := range 3 {
				must.Do(t, os.WriteFile(path, []byte(strings.Repeat("x", 10+i)), 0o600))
				v := must.Get(s.Get(t.Context()))(t)
				if all := s.Secrets(); !slices.Contains(all, v.Secret) || before != "" && !slices.Contains(all, before) || len(all) > 2 {
					t.Errorf("%s: %q of %q, then %q", name, all, before, v.Secret)
				}
				before = v.Secret
				time.Sleep(2 * time.Minute)
			}
		}
	})
}

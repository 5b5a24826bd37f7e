package admin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a real browser, driven over a pipe in the DevTools protocol:
// messages of JSON, each ended by a zero byte.
type chromium struct {
	t       testing.TB
	in      *os.File
	session string // of the one page

	mu      sync.Mutex
	next    int
	answers map[int]chan answer
	errors  []string // what the page complained of: exceptions, console, policy
	err     error    // set once the pipe is closed
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startChromium opens an empty page. Without a browser the test is skipped,
// except in CI.
func startChromium(t testing.TB) *chromium {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no Chromium on this machine, and CI is set; apt-get install chromium")
		}
		t.Skip("no Chromium on this machine; apt-get install chromium to see the page drawn")
	}
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--no-proxy-server", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	c := &chromium{t: t, in: in, answers: map[int]chan answer{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read(bufio.NewReader(out))
	}()
	t.Cleanup(func() {
		c.send("", "Browser.close", none{})
		in.Close()
		// A browser that does not close by itself is ended.
		timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		<-done
		out.Close()
	})
	c.attach()
	return c
}

type none struct{}

func (c *chromium) attach() {
	c.t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	c.call("Target.createTarget", struct {
		URL string `json:"url"`
	}{"about:blank"}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	c.call("Target.attachToTarget", struct {
		ID      string `json:"targetId"`
		Flatten bool   `json:"flatten"`
	}{target.ID, true}, &attached)
	c.session = attached.Session
	for _, domain := range []string{"Runtime", "Log", "Page"} {
		c.call(domain+".enable", none{}, nil)
	}
}

func (c *chromium) read(r *bufio.Reader) {
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("chromium closed its pipe: %w", err)
			for _, ch := range c.answers {
				close(ch)
			}
			c.answers = nil
			c.mu.Unlock()
			return
		}
		var a answer
		if err := json.Unmarshal(line[:len(line)-1], &a); err != nil {
			continue
		}
		c.mu.Lock()
		switch {
		case c.answers[a.ID] != nil:
			c.answers[a.ID] <- a
			delete(c.answers, a.ID)
		case a.Method == "Runtime.exceptionThrown", a.Method == "Runtime.consoleAPICalled", a.Method == "Log.entryAdded":
			c.errors = append(c.errors, a.Method+": "+string(a.Params))
		}
		c.mu.Unlock()
	}
}

func (c *chromium) send(session, method string, params any) (<-chan answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.next++
	data, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{c.next, session, method, params})
	if err != nil {
		return nil, err
	}
	ch := make(chan answer, 1)
	c.answers[c.next] = ch
	_, err = c.in.Write(append(data, 0))
	return ch, err
}

// call asks the browser, or the page once there is one.
func (c *chromium) call(method string, params, into any) {
	c.t.Helper()
	ch, err := c.send(c.session, method, params)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a, ok := <-ch:
		switch {
		case !ok:
			err = errors.New("the browser is gone")
		case a.Error != nil:
			err = errors.New(a.Error.Message)
		case into != nil:
			err = json.Unmarshal(a.Result, into)
		}
	case <-time.After(time.Minute):
		err = errors.New("no answer in a minute")
	}
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// open loads url in a window of that size.
func (c *chromium) open(url string, width, height int, dark bool) {
	c.t.Helper()
	c.resize(width, height)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	type feature struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	c.call("Emulation.setEmulatedMedia", struct {
		Features []feature `json:"features"`
	}{[]feature{{"prefers-color-scheme", scheme}}}, nil)
	c.call("Page.navigate", struct {
		URL string `json:"url"`
	}{url}, nil)
}

func (c *chromium) resize(width, height int) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", struct {
		Width  int  `json:"width"`
		Height int  `json:"height"`
		Scale  int  `json:"deviceScaleFactor"`
		Mobile bool `json:"mobile"`
	}{width, height, 1, false}, nil)
}

// eval returns what the expression says, waiting for it when it is a promise.
func (c *chromium) eval(expression string, into any) {
	c.t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	c.call("Runtime.evaluate", struct {
		Expression string `json:"expression"`
		Await      bool   `json:"awaitPromise"`
		ByValue    bool   `json:"returnByValue"`
	}{expression, true, true}, &got)
	if got.Exception != nil {
		c.t.Fatalf("%s: %s %s", expression, got.Exception.Text, got.Exception.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		c.t.Fatalf("%s: %v in %s", expression, err, got.Result.Value)
	}
}

// until waits for the condition to become true in the page.
func (c *chromium) until(condition string) {
	c.t.Helper()
	var ok bool
	c.eval(`new Promise((done) => {
		const end = Date.now() + 20000;
		const look = () => { let ok = false; try { ok = !!(`+condition+`); } catch {} if (ok || Date.now() > end) done(ok); else setTimeout(look, 20); };
		look();
	})`, &ok)
	if !ok {
		c.t.Fatalf("the page never came to %s; it says:\n%s", condition, c.page())
	}
}

// page is the text that a reader sees, and what the browser complained of.
func (c *chromium) page() string {
	c.t.Helper()
	var text string
	c.eval("document.body.innerText", &text)
	return text + "\n" + strings.Join(c.complaints(), "\n")
}

func (c *chromium) complaints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.errors...)
}

// jsNumber writes n for an expression.
func jsNumber(n int) string { return fmt.Sprint(n) }

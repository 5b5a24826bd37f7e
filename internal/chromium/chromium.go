package chromium

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// patience bounds every answer of the browser. axe-core thinks for 15 s about the
// largest fleet where other work takes the cores.
const patience = 4 * time.Minute

// Browser is one browser with one page. It is driven over a pipe in the
// DevTools protocol: messages of JSON, each ended by a zero byte. Its methods
// are for the goroutine of the test.
type Browser struct {
	t       testing.TB
	in      *os.File
	session string // of the one page

	mu      sync.Mutex
	next    int
	answers map[int]chan answer
	errors  []string // what the page complained of: exceptions, console, policy
	asked   []string // addresses that the page asked for
	err     error    // set once the pipe is closed
}

type answer struct {
	ID             int
	Method         string
	Params, Result json.RawMessage
	Error          *struct{ Message string }
}

// Start opens an empty page. Without a browser the test is skipped,
// except in CI.
func Start(t testing.TB) *Browser {
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
	must.Do(t, err)
	out, fromBrowser, err := os.Pipe()
	must.Do(t, err)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--no-proxy-server", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // 3 and 4
	must.Do(t, cmd.Start())
	toBrowser.Close()
	fromBrowser.Close()
	c := &Browser{t: t, in: in, answers: map[int]chan answer{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read(bufio.NewReader(out))
	}()
	t.Cleanup(func() {
		c.send("", "Browser.close", with{})
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

// with are the parameters of a call, by name.
type with map[string]any

func (c *Browser) attach() {
	c.t.Helper()
	var target struct{ TargetID string }
	c.call("Target.createTarget", with{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", with{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Page", "Network"} {
		c.call(domain+".enable", with{}, nil)
	}
}

func (c *Browser) read(r *bufio.Reader) {
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
		case a.Method == "Network.requestWillBeSent":
			c.asked = append(c.asked, address(a.Params))
		}
		c.mu.Unlock()
	}
}

func (c *Browser) send(session, method string, params with) (<-chan answer, error) {
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
		Params  with   `json:"params"`
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
func (c *Browser) call(method string, params with, into any) {
	c.t.Helper()
	if err := c.try(method, params, into); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *Browser) try(method string, params with, into any) error {
	ch, err := c.send(c.session, method, params)
	if err != nil {
		return err
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
	case <-time.After(patience):
		err = fmt.Errorf("no answer in %v", patience)
	}
	return err
}

// Open loads url in a window of that size.
func (c *Browser) Open(url string, width, height int, dark bool) {
	c.t.Helper()
	c.Resize(width, height)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	c.call("Emulation.setEmulatedMedia", with{"features": []with{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	c.call("Page.navigate", with{"url": url}, nil)
}

// Resize gives the window another size, in CSS pixels.
func (c *Browser) Resize(width, height int) {
	c.t.Helper()
	c.call("Emulation.setDeviceMetricsOverride", with{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// evaluated is what an expression says, or why it says nothing.
type evaluated struct {
	Result           struct{ Value json.RawMessage }
	ExceptionDetails *struct {
		Text      string
		Exception struct{ Description string }
	}
}

// Eval returns what the expression says, waiting for it when it is a promise.
func (c *Browser) Eval(expression string, into any) {
	c.t.Helper()
	var got evaluated
	c.call("Runtime.evaluate", with{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if e := got.ExceptionDetails; e != nil {
		c.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		c.t.Fatalf("%s: %v in %s", expression, err, got.Result.Value)
	}
}

// Until waits for the condition to become true in the page.
func (c *Browser) Until(condition string) {
	c.t.Helper()
	if !c.Within(patience/2, condition) {
		c.t.Fatalf("the page never came to %s; it says:\n%s", condition, c.Page())
	}
}

// Arrive waits for the condition to become true in whatever page the browser goes
// to meanwhile.
func (c *Browser) Arrive(condition string) {
	c.t.Helper()
	q := with{"expression": "(() => { try { return !!(" + condition + "); } catch { return false; } })()", "returnByValue": true}
	for end := time.Now().Add(patience / 2); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		var got evaluated
		if c.try("Runtime.evaluate", q, &got) == nil && string(got.Result.Value) == "true" {
			return
		}
	}
	c.t.Fatalf("the browser never came to %s; it says:\n%s", condition, c.Page())
}

// Within waits for the condition at most so long, which is less than patience, and
// reports whether it came true.
func (c *Browser) Within(most time.Duration, condition string) bool {
	c.t.Helper()
	var ok bool
	c.Eval(fmt.Sprintf(`new Promise((done) => {
		const end = Date.now() + %d;
		const look = () => { let ok = false; try { ok = !!(%s); } catch {} if (ok || Date.now() > end) done(ok); else setTimeout(look, 20); };
		look();
	})`, most.Milliseconds(), condition), &ok)
	return ok
}

// Page is the text that a reader sees, and what the browser complained of.
func (c *Browser) Page() string {
	c.t.Helper()
	var text string
	c.Eval("document.body.innerText", &text)
	return text + "\n" + strings.Join(c.Complaints(), "\n")
}

// Complaints are what the browser said of the page: exceptions, refusals by its
// policy, missing files.
func (c *Browser) Complaints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.errors...)
}

// address is where the request of that event goes.
func address(params json.RawMessage) string {
	var p struct{ Request struct{ URL string } }
	if err := json.Unmarshal(params, &p); err != nil {
		return "unreadable: " + string(params)
	}
	return p.Request.URL
}

// Asked are the addresses that the page asked for so far.
func (c *Browser) Asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.asked...)
}

// Shoot writes a picture of the page into file: of the whole page, or of the
// window alone.
func (c *Browser) Shoot(file string, whole bool) {
	c.t.Helper()
	var shot struct{ Data []byte }
	c.call("Page.captureScreenshot", with{"format": "png", "captureBeyondViewport": whole}, &shot)
	must.Do(c.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(c.t, os.WriteFile(file, shot.Data, 0o644))
}

// Print makes the page look as on paper, or as on the screen again.
func (c *Browser) Print(yes bool) {
	c.t.Helper()
	media := "screen"
	if yes {
		media = "print"
	}
	c.call("Emulation.setEmulatedMedia", with{"media": media}, nil)
}

// Load runs a script in the page, past the page's policy.
func (c *Browser) Load(script string) {
	c.t.Helper()
	var got evaluated
	c.call("Runtime.evaluate", with{"expression": script}, &got)
	if got.ExceptionDetails != nil {
		c.t.Fatalf("the script failed: %s", got.ExceptionDetails.Text)
	}
}

// Type writes into what has the focus.
func (c *Browser) Type(words string) {
	c.t.Helper()
	c.call("Input.insertText", with{"text": words}, nil)
}

// Press presses one key: a letter or sign, Enter, Escape or Tab.
func (c *Browser) Press(key string) {
	c.t.Helper()
	code, text, number := "Key"+strings.ToUpper(key), key, int(strings.ToUpper(key)[0])
	switch key {
	case "Enter":
		code, text, number = key, "\r", 13
	case "Escape":
		code, text, number = key, "", 27
	case "Tab":
		code, text, number = key, "", 9
	case "/":
		code, number = "Slash", 191
	}
	for _, what := range []string{"keyDown", "keyUp"} {
		c.call("Input.dispatchKeyEvent", with{"type": what, "key": key, "code": code, "text": text, "windowsVirtualKeyCode": number}, nil)
		text = "" // one is written as it goes down
	}
}

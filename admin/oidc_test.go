package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/pacer-dev/pacer/admin/signin"
	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/chromium"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
)

// users are the storage of a real provider, whose people have groups.
type users struct {
	*storage.Storage
	groups map[string][]string // by the id of a person
}

func (u *users) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := u.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	if groups := u.groups[subject]; groups != nil {
		info.AppendClaims("groups", groups)
	}
	return nil
}

// guestbook is an admin port behind a real provider.
type guestbook struct {
	t        *testing.T
	port     *httptest.Server
	provider *httptest.Server
	conf     *config.Config
	set      func(*config.Config)
	ring     *keys.Ring
	log      *lines

	mu     sync.Mutex
	tamper func(http.ResponseWriter, *http.Request) bool // of the provider; true = it has answered
	asked  []string                                      // requests that reached the provider
}

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const clientSecret = "s3cret-of-the-client"

func newGuestbook(t *testing.T) *guestbook {
	t.Helper()
	g := &guestbook{t: t, log: &lines{}}
	var handler, op http.Handler
	g.port = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	g.provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		tamper := g.tamper
		g.asked = append(g.asked, r.Method+" "+r.URL.Path)
		g.mu.Unlock()
		if tamper == nil || !tamper(w, r) {
			op.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(g.port.Close)
	t.Cleanup(g.provider.Close)

	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the provider tells of each request
	t.Cleanup(func() { slog.SetDefault(before) })
	client := storage.WebClient("pacer", clientSecret, g.port.URL+signin.CallbackPath)
	store := storage.NewStorageWithClients(storage.NewUserStore(g.provider.URL), map[string]*storage.Client{"pacer": client})
	op = exampleop.SetupServer(g.provider.URL, &users{store, map[string][]string{"id1": {"staff", "platform"}, "id2": {"staff"}}}, nil, false)

	g.ring = keys.New(must.Get(filekeys.Open(t.TempDir()))(t))
	o := newWorld(t).options
	conf := *o.Config()
	conf.Admin.Private = true
	conf.Admin.Token = "root"
	conf.Admin.OIDC = config.OIDC{
		Issuer: g.provider.URL, ClientID: "pacer", ClientSecret: clientSecret, URL: g.port.URL, Scopes: []string{"profile", "email"}, Claim: "groups",
		Roles: config.OIDCRoles{View: []string{"staff"}, Admin: []string{"platform"}}, Session: time.Hour,
	}
	var mu sync.Mutex
	g.conf = &conf
	g.set = func(c *config.Config) { mu.Lock(); defer mu.Unlock(); g.conf = c }
	o.Config = func() *config.Config { mu.Lock(); defer mu.Unlock(); return g.conf }
	o.Keys, o.Log, o.Provider = g.ring, slog.New(slog.NewTextHandler(g.log, nil)), g.provider.Client().Transport
	o.Drain = func(string, bool) bool { return true }
	o.Note = noteIn(t, g.ring)
	handler = New(o)
	return g
}

// browser keeps cookies and follows redirects, as one does.
func (g *guestbook) browser() *http.Client {
	jar := must.Get(cookiejar.New(nil))(g.t)
	return &http.Client{Jar: jar, Timeout: time.Minute}
}

// page is what a browser shows: where it is, with which status, and the text.
func (g *guestbook) page(c *http.Client, method, to string, form url.Values) (at *url.URL, status int, text string, head http.Header) {
	g.t.Helper()
	r := must.Get(http.NewRequest(method, to, strings.NewReader(form.Encode())))(g.t)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", g.port.URL)
	}
	resp := must.Get(c.Do(r))(g.t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(g.t)
	return resp.Request.URL, resp.StatusCode, string(body), resp.Header
}

var formID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signIn opens the page, and fills in the form of the provider.
func (g *guestbook) signIn(c *http.Client, user string) (at *url.URL, status int, text string) {
	g.t.Helper()
	at, status, text, _ = g.page(c, http.MethodGet, g.port.URL+"/", nil)
	id := formID.FindStringSubmatch(text)
	if id == nil || !strings.HasPrefix(at.String(), g.provider.URL) {
		g.t.Fatalf("the browser is at %s (%d), want the form of the provider:\n%s", at, status, text)
	}
	at, status, text, _ = g.page(c, http.MethodPost, g.provider.URL+"/login/username", url.Values{"id": {id[1]}, "username": {user}, "password": {"verysecure"}})
	return at, status, text
}

func (g *guestbook) admin() string { return "test-user@127.0.0.1" }

// session is what the port says of a browser.
func (g *guestbook) session(c *http.Client) (s api.Session, status int) {
	g.t.Helper()
	_, status, text, _ := g.page(c, http.MethodGet, g.port.URL+"/api/v1/session", nil)
	if status == http.StatusOK {
		must.Do(g.t, json.Unmarshal([]byte(text), &s))
	}
	return s, status
}

// Two people sign in at a real provider: what each may do is by their groups, the
// cookie is out of reach of scripts, and ends with the session.
func TestPeopleSignIn(t *testing.T) {
	g := newGuestbook(t)
	c := g.browser()
	at, status, text := g.signIn(c, g.admin())
	if at.String() != g.port.URL+"/" || status != http.StatusOK || !strings.Contains(text, "<title>Pacer</title>") {
		t.Fatalf("after signing in the browser is at %s (%d), want the page:\n%.300s\n%s", at, status, text, g.log)
	}
	s, _ := g.session(c)
	if s.Role != "admin" || !s.SignedIn || s.Name != "oidc:id1 test-user@zitadel.ch" || s.Ends == nil || s.Ends.Before(time.Now().Add(59*time.Minute)) {
		t.Errorf("the session is %+v, want that of an admin for an hour", s)
	}
	if _, status, text, _ := g.page(c, http.MethodPost, g.port.URL+"/api/v1/backends/h200/drain", nil); status != http.StatusOK {
		t.Errorf("an admin drains: %d %s", status, text)
	}

	other := g.browser()
	g.signIn(other, "test-user2")
	if s, _ := g.session(other); s.Role != "view" {
		t.Errorf("somebody of the staff has the role %q, want view", s.Role)
	}
	if _, status, _, _ := g.page(other, http.MethodPost, g.port.URL+"/api/v1/backends/h200/drain", nil); status != http.StatusForbidden {
		t.Errorf("somebody who may look drains: %d, want 403", status)
	}
	if _, status, _, _ := g.page(other, http.MethodGet, g.port.URL+"/api/v1/audit", nil); status != http.StatusForbidden {
		t.Errorf("somebody who may look reads the audit log: %d, want 403", status)
	}

	// A group that loses its role loses it at once, and nobody has to sign in again.
	conf := *g.conf
	conf.Admin.OIDC.Roles = config.OIDCRoles{Operate: []string{"platform"}}
	g.set(&conf)
	if s, _ := g.session(c); s.Role != "operate" {
		t.Errorf("after a change of roles %+v, want operate", s)
	}
	if _, status := g.session(other); status != http.StatusForbidden {
		t.Errorf("whose group has no role any more looks: %d, want 403", status)
	}

	_, status, text, _ = g.page(c, http.MethodPost, g.port.URL+signin.LogoutPath, nil)
	var out api.SignedOut
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK || !strings.HasPrefix(out.Next, g.provider.URL+"/end_session?client_id=pacer") {
		t.Errorf("signing out: %d %s (%v), want where the provider ends its own", status, text, err)
	}
	if _, status := g.session(c); status != http.StatusUnauthorized {
		t.Errorf("after signing out %d, want 401", status)
	}
	got := audited(must.Get(g.ring.Entries(t.Context(), 100))(t))
	want := []string{
		"oidc:id1 test-user@zitadel.ch session.open admin", "oidc:id1 test-user@zitadel.ch backend.drain h200",
		"oidc:id2 test-user2@zitadel.ch session.open view", "oidc:id1 test-user@zitadel.ch session.end operate",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log says %q, want %q", got, want)
	}
}

// What goes to the provider, and what comes back as cookies.
func TestTheFlowOfASignIn(t *testing.T) {
	g := newGuestbook(t)
	c := g.browser()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	_, status, _, head := g.page(c, http.MethodGet, g.port.URL+"/", nil)
	if status != http.StatusSeeOther || head.Get("Location") != signin.LoginPath {
		t.Fatalf("the page sends who is not known to %q (%d), want %s", head.Get("Location"), status, signin.LoginPath)
	}
	if _, status, _, head := g.page(c, http.MethodGet, g.port.URL+"/api/v1/routes", nil); status != http.StatusUnauthorized || head.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a program without a token gets %d, %q; want 401 and no question for a password", status, head.Get("WWW-Authenticate"))
	}
	_, _, _, head = g.page(c, http.MethodGet, g.port.URL+signin.LoginPath, nil)
	to := must.Get(url.Parse(head.Get("Location")))(t)
	q := to.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("state")) < 43 || len(q.Get("nonce")) < 43 ||
		q.Get("state") == q.Get("nonce") || q.Get("redirect_uri") != g.port.URL+signin.CallbackPath || q.Get("scope") != "openid profile email" || q.Has("client_secret") {
		t.Errorf("the provider is asked %v", q)
	}
	cookie := head.Get("Set-Cookie")
	for _, want := range []string{"pacer-login=", "HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, q.Get("state")) || strings.Contains(cookie, q.Get("nonce")) {
		t.Errorf("the cookie shows what it seals: %q", cookie)
	}

	// The host of the public address is answered, and no other one; with TLS before
	// the port cookies are for TLS alone.
	conf := *g.conf
	conf.Admin.OIDC.URL = "https://pacer.example.com"
	g.set(&conf)
	for host, want := range map[string]int{"pacer.example.com": http.StatusSeeOther, "evil.example.com": http.StatusForbidden} {
		r := must.Get(http.NewRequest(http.MethodGet, g.port.URL+signin.LoginPath, nil))(t)
		r.Host = host
		resp := must.Get(c.Do(r))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: %d, want %d", host, resp.StatusCode, want)
		}
		if cookie := resp.Header.Get("Set-Cookie"); want == http.StatusSeeOther && (!strings.HasPrefix(cookie, "__Host-pacer-login=") || !strings.Contains(cookie, "Secure")) {
			t.Errorf("behind TLS the cookie is %q", cookie)
		}
	}
}

// otherStart is s with another first character.
func otherStart(s string) string {
	if s[0] == 'x' {
		return "y" + s[1:]
	}
	return "x" + s[1:]
}

// Every way to come back that is not the one that was begun ends without a session.
func TestSignInsThatAreRefused(t *testing.T) {
	g := newGuestbook(t)
	// begun is a browser that the provider has just sent back, and where to.
	begun := func() (*http.Client, *url.URL) {
		t.Helper()
		c := g.browser()
		var back *url.URL
		c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == signin.CallbackPath {
				back = r.URL
				return http.ErrUseLastResponse
			}
			return nil
		}
		g.signIn(c, g.admin())
		if back == nil {
			t.Fatal("the provider sends nobody back")
		}
		return c, back
	}
	with := func(u *url.URL, change func(url.Values)) string {
		q := u.Query()
		change(q)
		copied := *u
		copied.RawQuery = q.Encode()
		return copied.String()
	}
	refused := func(name string, c *http.Client, to string, want int) {
		t.Helper()
		_, status, text, head := g.page(c, http.MethodGet, to, nil)
		if status != want {
			t.Errorf("%s: %d %.200s, want %d", name, status, text, want)
		}
		for _, cookie := range head.Values("Set-Cookie") {
			if strings.HasPrefix(cookie, "pacer-session=") {
				t.Errorf("%s: there is a session: %s", name, cookie)
			}
		}
		if _, status := g.session(c); status != http.StatusUnauthorized {
			t.Errorf("%s: afterwards %d, want 401", name, status)
		}
	}

	c, back := begun()
	refused("another browser", g.browser(), back.String(), http.StatusBadRequest)
	refused("another state", c, with(back, func(q url.Values) { q.Set("state", otherStart(q.Get("state"))) }), http.StatusBadRequest)
	refused("a second try after one that failed", c, back.String(), http.StatusBadRequest)
	c, back = begun()
	refused("another provider", c, with(back, func(q url.Values) { q.Set("iss", "https://evil.example") }), http.StatusForbidden)
	c, back = begun()
	refused("the provider refuses", c, with(back, func(q url.Values) {
		q.Del("code")
		q.Set("error", "access_denied")
		q.Set("error_description", "<script>")
	}), http.StatusForbidden)
	c, back = begun()
	refused("a made-up code", c, with(back, func(q url.Values) { q.Set("code", "made-up-code") }), http.StatusForbidden)

	// The code of one browser in the session of another: PKCE.
	_, theirs := begun()
	c, back = begun()
	refused("a code that was stolen", c, with(back, func(q url.Values) { q.Set("code", theirs.Query().Get("code")) }), http.StatusForbidden)

	// A token that the provider did not sign, of another client, or of before.
	other := newGuestbook(t)
	for name, change := range map[string]func(map[string]any){
		"signed by another": nil,
		"cut":               func(answer map[string]any) { answer["id_token"] = answer["id_token"].(string)[:40] },
		"none":              func(answer map[string]any) { delete(answer, "id_token") },
	} {
		c, back = begun()
		g.rewrite("/oauth/token", func(answer map[string]any) {
			if change != nil {
				change(answer)
				return
			}
			answer["id_token"] = other.foreignToken()
		})
		refused("an ID token: "+name, c, back.String(), http.StatusForbidden)
		g.rewrite("", nil)
	}
	// A good token of another sign-in of the same person: the nonce.
	earlier := g.foreignToken()
	c, back = begun()
	g.rewrite("/oauth/token", func(answer map[string]any) { answer["id_token"] = earlier })
	refused("an ID token of another sign-in", c, back.String(), http.StatusForbidden)
	g.rewrite("", nil)
	// What the provider says of somebody else.
	c, back = begun()
	g.rewrite("/userinfo", func(answer map[string]any) { answer["sub"] = "id2" })
	refused("userinfo of somebody else", c, back.String(), http.StatusForbidden)
	g.rewrite("", nil)

	// Nothing that was tried is in the log, nor the secret of the client.
	log := g.log.String()
	for _, never := range []string{clientSecret, earlier, "made-up-code", theirs.Query().Get("code"), "<script>", "eyJ"} {
		if strings.Contains(log, never) {
			t.Errorf("the log has %q:\n%s", never, log)
		}
	}
	if !strings.Contains(log, "access_denied") || !strings.Contains(log, "invalid_grant") || !strings.Contains(log, "of another sign-in") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// rewrite changes what the provider answers at path; "" = nothing.
func (g *guestbook) rewrite(path string, change func(map[string]any)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tamper = nil
	if path == "" {
		return
	}
	target := must.Get(url.Parse(g.provider.URL))(g.t)
	g.tamper = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path || r.Header.Get("X-Again") != "" {
			return false
		}
		again := r.Clone(r.Context())
		again.RequestURI, again.URL.Scheme, again.URL.Host = "", target.Scheme, target.Host
		again.Header.Set("X-Again", "1")
		resp, err := http.DefaultTransport.RoundTrip(again)
		if err != nil {
			g.t.Error(err)
			return false
		}
		defer resp.Body.Close()
		answer := map[string]any{}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			g.t.Error(err)
		}
		change(answer)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(resp.StatusCode)
		_ = json.NewEncoder(w).Encode(answer)
		return true
	}
}

// foreignToken is an ID token as another provider signs it, for the same client.
func (g *guestbook) foreignToken() string {
	var token string
	g.rewrite("/oauth/token", func(answer map[string]any) { token, _ = answer["id_token"].(string) })
	defer g.rewrite("", nil)
	g.signIn(g.browser(), g.admin())
	if token == "" {
		g.t.Error("the other provider gave no token")
	}
	return token
}

// A provider that is out keeps nobody from starting, and is asked again; requests
// without a session are not carried to it.
func TestAProviderThatIsOut(t *testing.T) {
	g := newGuestbook(t)
	g.mu.Lock()
	g.tamper = func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "a page with words of its own", http.StatusBadGateway)
		return true
	}
	g.mu.Unlock()
	c := g.browser()
	for range 20 {
		if _, status, text, _ := g.page(c, http.MethodGet, g.port.URL+signin.LoginPath, nil); status != http.StatusServiceUnavailable || strings.Contains(text, "of its own") {
			t.Fatalf("%d %s, want 503 without the words of the provider", status, text)
		}
	}
	g.mu.Lock()
	asked := len(g.asked)
	g.tamper = nil
	g.mu.Unlock()
	if asked > 5 {
		t.Errorf("20 sign-ins asked a provider that is out %d times", asked)
	}
	if w := call(g.port.Config.Handler, http.MethodGet, "/api/v1/routes", "root", ""); w.Code != http.StatusOK {
		t.Errorf("with a token %d, want 200 while the provider is out", w.Code)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		_, status, _, _ := g.page(c, http.MethodGet, g.port.URL+signin.LoginPath, nil)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a provider that is back is not asked again")
		}
		<-time.After(100 * time.Millisecond)
	}
}

// An open stream of events ends with the session that opened it, and a page of
// another origin gets nothing by a session.
func TestASessionIsNotWorthMore(t *testing.T) {
	g := newGuestbook(t)
	c := g.browser()
	g.signIn(c, g.admin())
	r := must.Get(http.NewRequest(http.MethodGet, g.port.URL+"/api/v1/events", nil))(t)
	c.Timeout = 0
	events, err := c.Do(r)
	if err != nil || events.StatusCode != http.StatusOK {
		t.Fatal(events, err)
	}
	defer events.Body.Close()

	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden, g.port.URL: http.StatusOK} {
		r := must.Get(http.NewRequest(http.MethodPost, g.port.URL+"/api/v1/backends/h200/drain", nil))(t)
		r.Header.Set("Origin", origin)
		resp := must.Get(c.Do(r))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("from %s: %d, want %d", origin, resp.StatusCode, want)
		}
	}
	g.page(c, http.MethodPost, g.port.URL+signin.LogoutPath, nil)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, events.Body)
		ended <- err
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a stream of events goes on after its session")
	}
}

// A person signs in and out with a real browser: the buttons that change something
// are there in between, and no script can read the cookie.
func TestThePageSignsPeopleIn(t *testing.T) {
	g := newGuestbook(t)
	c := chromium.Start(t)
	c.Open(g.port.URL+"/", 1280, 900, false)
	fill := func(user string) {
		t.Helper()
		c.Arrive(`document.getElementById("password") !== null`)
		c.Eval(`document.getElementById("username").value = `+strconv.Quote(user)+`; document.getElementById("password").value = "verysecure"; setTimeout(() => document.querySelector("button").click()); 0`, nil)
	}
	fill(g.admin())
	c.Arrive(`document.getElementById("unlock")?.textContent === "Sign out" && document.querySelectorAll(".c-do button").length > 0`)
	var seen string
	c.Eval(`JSON.stringify([location.pathname + location.search, document.cookie, { ...localStorage }, document.getElementById("unlock").title])`, &seen)
	if want := `["/","",{},"oidc:id1 test-user@zitadel.ch"]`; seen != want {
		t.Errorf("the page is %s, want %s", seen, want)
	}
	c.Eval(`document.querySelector(".c-do button").click(); 0`, nil)
	c.Arrive(`document.getElementById("toast").textContent.includes("takes no new requests")`)
	for _, b := range c.Barriers() {
		t.Error(b)
	}
	c.Eval(`setTimeout(() => document.getElementById("unlock").click()); 0`, nil)
	c.Arrive(`document.body.textContent.includes("signed out")`)
	c.Open(g.port.URL+"/", 1280, 900, false)
	c.Arrive(`document.getElementById("password") !== null`)
	fill("test-user2")
	c.Arrive(`document.getElementById("unlock")?.textContent === "Sign out" && document.querySelectorAll(".target").length > 0`)
	var buttons int
	if c.Eval(`document.querySelectorAll(".c-do button").length`, &buttons); buttons != 0 {
		t.Errorf("somebody who may only look has %d buttons", buttons)
	}
}

package attack

import (
	"strings"
)

// fromPage is a request that a browser sends for a page without asking first:
// plain text, which is JSON all the same.
func fromPage(host, headers string) string {
	text := post("", "Content-Type: text/plain;charset=UTF-8\r\n"+headers, hello)
	return strings.Replace(text, "Host: x\r\n", "Host: "+host+"\r\n", 1)
}

// wantPage sends what a browser would, and wants it to be served or refused. A
// refusal says what to add, and nothing that the page may read.
func wantPage(v *victim, request string, served bool, add string) {
	v.Helper()
	got := raw(v, v.addr, request)
	switch {
	case served:
		if status(got) != 200 {
			v.Errorf("%q: %.300q, want 200", request, got)
		}
	case status(got) != 403 || !strings.Contains(got, add) || strings.Contains(got, "Access-Control-Allow"):
		v.Errorf("%q: %.500q, want 403 that says to add %s", request, got, add)
	}
}

// A page of somebody else, open in a browser on this machine, asks for tokens of
// a gateway without keys.
func crossSite(v *victim) {
	const foreign = "Origin: https://evil.example\r\n"
	for _, fetch := range []string{"", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n", "Sec-Fetch-Site: same-site\r\n"} {
		wantPage(v, fromPage(v.addr, foreign+fetch), false, `https://evil.example`)
	}
	wantPage(v, fromPage(v.addr, "Origin: null\r\n"), false, "cors: { origins:")
	wantPage(v, fromPage(v.addr, "Origin: http://localhost:3000\r\n"), false, "http://localhost:3000")
	wantPage(v, strings.Replace(fromPage(v.addr, foreign+"Access-Control-Request-Method: POST\r\n"), "POST ", "OPTIONS ", 1), false, "https://evil.example")
	wantPage(v, fromPage(v.addr, "Origin: http://"+v.addr+"\r\nSec-Fetch-Site: same-origin\r\n"), true, "")
}

// The same with a name of its own that points to this machine: for the browser
// the gateway is the page's own server.
func rebinding(v *victim) {
	_, port, _ := strings.Cut(v.addr, ":")
	for _, name := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "pacer"} {
		at := name + ":" + port
		wantPage(v, fromPage(at, "Origin: http://"+at+"\r\n"), false, name)
		wantPage(v, fromPage(at, "Sec-Fetch-Site: same-origin\r\n"), false, name)
	}
	wantPage(v, fromPage("pacer:"+port, ""), true, "") // an SDK, in another container
	wantPage(v, fromPage("pacer:"+port, "Sec-Fetch-Mode: cors\r\n"), true, "")
}

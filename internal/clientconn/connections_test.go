package clientconn

import (
	"net"
	"testing"
	"time"
)

// room is a set of connections with most at once, and those who were accepted,
// by name.
type room struct {
	t *testing.T
	l *Listener
	c map[string]*conn
}

func newRoom(t *testing.T, most int) *room {
	return &room{t: t, l: &Listener{connections: connections{most: most}}, c: map[string]*conn{}}
}

// enters returns who made room for name: "" = nobody had to, "-" = there was no
// room.
func (r *room) enters(name string) string {
	r.t.Helper()
	inside, outside := net.Pipe()
	r.t.Cleanup(func() { inside.Close(); outside.Close() })
	c := &conn{Conn: inside, listener: r.l}
	evict, ok, _ := r.l.connections.add(time.Now(), c)
	if !ok {
		return "-"
	}
	r.c[name] = c
	if evict == nil {
		return ""
	}
	_ = evict.end()
	for name, c := range r.c {
		if c == evict {
			return name
		}
	}
	r.t.Fatal("somebody made room whom nobody knows")
	return ""
}

func (r *room) update(name string, change func(*standing)) {
	r.l.connections.update(r.c[name], change)
}

func (r *room) want(newcomer, leaves string) {
	r.t.Helper()
	if got := r.enters(newcomer); got != leaves {
		r.t.Errorf("%q made room for %q, want %q", got, newcomer, leaves)
	}
}

func begins(s *standing)  { s.active = true }
func known(s *standing)   { s.known = true }
func answers(s *standing) { s.answering = true }
func idles(s *standing)   { s.active, s.answering = false, false }

// Who has shown nothing goes before who has a key; who is at work stays.
func TestWhoMakesRoom(t *testing.T) {
	r := newRoom(t, 6)
	for _, name := range []string{"keyed, at work", "keyed, idle", "answered", "sends", "silent", "lingers"} {
		r.want(name, "")
		if name != "silent" {
			r.update(name, begins)
		}
	}
	r.update("keyed, at work", known)
	r.update("keyed, idle", known)
	r.update("keyed, idle", idles)
	r.update("answered", answers)
	if !r.l.connections.lingers(r.c["lingers"]) {
		t.Fatal("it may not linger")
	}
	r.want("1", "lingers")
	r.want("2", "sends") // the oldest of the strangers, though it sends
	r.want("3", "silent")
	r.update("1", begins)
	r.update("1", idles) // the youngest again
	r.want("4", "2")
	r.update("answered", idles) // a stranger, by its answer
	r.want("5", "3")
	r.want("6", "1")
	r.want("7", "4")
	r.want("8", "answered")
}

// A tenth is left to strangers: a newcomer finds the time to show its key,
// however many connections are kept by those who did. And strangers never take
// more than that from them.
func TestATenthIsLeftToStrangers(t *testing.T) {
	r := newRoom(t, 20)
	for i := range 20 {
		name := string(rune('a' + i))
		r.want(name, "")
		r.update(name, begins)
		r.update(name, known)
		r.update(name, idles)
	}
	r.want("1", "a") // there is no stranger
	r.want("2", "b")
	r.want("3", "c")
	r.want("4", "1") // three are more than a tenth
	r.want("5", "2")
	r.update("3", begins)
	r.update("3", known)
	r.update("4", begins)
	r.update("4", known) // one is left
	r.want("6", "d")
}

// While all are at work a new one is closed, and one that leaves makes room,
// once.
func TestNobodyMakesRoom(t *testing.T) {
	r := newRoom(t, 2)
	r.want("a", "")
	r.want("b", "")
	r.update("a", answers)
	r.update("b", begins)
	r.update("b", known)
	r.want("c", "-")
	_ = r.c["a"].end()
	_ = r.c["a"].end()
	r.want("d", "")
	r.want("e", "d")
}

func TestTheBoundIsSpokenOfOnceAMinute(t *testing.T) {
	c := connections{most: 1}
	now := time.Now()
	for i, want := range []bool{false, true, false, true} {
		_, _, say := c.add(now.Add(time.Duration(i)*31*time.Second), &conn{})
		if say != want {
			t.Errorf("connection %d: said %v, want %v", i, say, want)
		}
	}
}

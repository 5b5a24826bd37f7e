// Package hostname knows the names of hosts: which can be one, and what the
// Host headers of ports say that browsers may reach.
//
// A web page can make a browser call a port under a name of its own that
// resolves to this machine (DNS rebinding); for the browser that is the page's
// own server then. So a port asks under which name it was called, and answers
// to names that a stranger cannot own.
package hostname

// Package providers knows how to talk to one backend: its transport, the
// dialect of its answers, and the breaker around it.
//
// A Backend sends one request and returns the response once headers are there;
// everything after that is the relay's. A Meter looks on at the bytes of one
// answer, counts content, reads usage, and takes out the one event that only
// Pacer asked for. Neither decides anything: verdicts go to the breaker, whose
// state is pushed outwards through Options.OnHealth.
//
// A backend is one incarnation: reloading the configuration makes a new one,
// and the old one lives on through the requests that hold it.
package providers

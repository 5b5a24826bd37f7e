// Package redisconn is the one place that talks to Redis or Valkey: single,
// Sentinel or Cluster. It builds the client with timeouts that fit a gateway,
// keeps a dead or slow server from being asked again and again, and names the
// keys.
//
// Nothing on the path of a request may wait for a Client. Its users are loops:
// they ask with Do, which answers at once with an *OutError while the server is
// left alone after a failure. The wait starts at a second and doubles up to
// ten; one call then goes out as a trial.
//
// It logs nothing: a failure comes back as the error of Do, and package share says
// what it means. No error of this package holds a password.
package redisconn

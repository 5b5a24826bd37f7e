// Package credential makes the secrets that requests to a backend carry: as they
// are configured, out of a file, as a command prints them, or as the library of a
// cloud gets them.
//
// A Source is asked for each request. It keeps what it made until that expires,
// and makes the next a little before, in the time of one request while the others
// go on with the old. What cannot be made is tried again after a few seconds, and
// not for every request.
//
// No error and no log line holds a secret, nor anything that a command printed.
package credential

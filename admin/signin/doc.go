// Package signin lets people into the admin port by OpenID Connect: the
// authorization code flow with PKCE, a state and a nonce.
//
// A Door sends a browser to the provider (Login), takes it back (Callback) and
// from then on knows it by a cookie (Visit). What may be done by whom is not
// decided here: a Visit tells the groups that the provider has named.
//
// Nobody who has not signed in can make anything grow: what a sign-in needs
// until it is back travels in a cookie that only this Door can read. Sessions are
// in memory, at most so many in all and for one person, and each ends at a fixed
// time. A cookie holds a random number, of which the hash is kept.
//
// Tokens of the provider are checked, read and forgotten; none is kept, logged or
// handed on. A Door is safe for concurrent use, starts no goroutine, and asks the
// provider only when somebody signs in.
package signin

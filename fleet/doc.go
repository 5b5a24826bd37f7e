// Package fleet is what is in service: the backends of a configuration, with the
// loops that watch over them, the routes on them, and what is believed of their
// speed before any evidence.
//
// Apply puts a configuration into force, the first one and every later one. It
// works all of it out before anything changes, so a bad one changes nothing.
// A backend whose connection is as before stays as it is; one that is replaced
// serves the requests that it has until they end.
//
// What a breaker, a health page and an operator say of a backend becomes one
// word for the router here.
package fleet

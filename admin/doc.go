// Package admin is the admin port: the JSON API, the metrics, and the page. It
// shows what router, profiles and telemetry know, and changes nothing.
//
// It is made for loopback and for private networks: it asks for no key, so it
// refuses what is neither GET nor a question, answers only to Host names that
// no stranger can own (a page on the web may otherwise reach it through a name
// that it points at this machine), and forbids browsers to load anything from
// elsewhere.
//
// JSON: seconds are numbers, times RFC 3339 in UTC, and what is not known is
// null, never NaN.
package admin

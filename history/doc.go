// Package history remembers how it went, and says what is wrong.
//
// A Ring holds, for each route and each backend, what became of requests in
// steps of ten seconds for an hour and of a minute for six: counts, and sketches
// of speeds and times to the first token. A window is the sum of its steps. A
// Watch is told once a second how everything is. It makes of that at most one
// Cause for each route and backend, in words, and keeps the Timeline of what began
// and ended.
//
// All of it is bounded: by the names of the configuration, a fixed number of
// steps and marks, and a fixed number of entries in a sketch.
//
// Nothing here reads a clock, starts a goroutine or does I/O: callers pass now.
// Series, Ring and Watch are safe for concurrent use.
//
// Units: seconds, tokens, tokens/s of one stream.
package history

// Package sim is a simulated inference engine: step-level continuous batching
// with prefill, a sequence limit with a queue behind it, noise, faults and the
// quirks of real servers. It stands in for a GPU in the demo, in tests and in
// the arena, and it is meant to be harsher than the real thing, never kinder.
//
// Engine is the pure core: it is told the time and says what happens next, so
// one and the same engine runs under the wall clock behind Server and under
// virtual time in tests. Truth is kept by the engine itself, in its own terms,
// and shares no code with what measures it: this package imports nothing of
// Pacer.
package sim

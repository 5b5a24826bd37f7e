// Package accuracy holds the curves that Pacer learns against truths that are
// known: simulated engines, whose own step time at the same concurrency and the
// same prompt load says what the curve should have been. It has no code of its
// own beside its tests.
//
// A world drives one sim.Engine in virtual time, and profiles.Books look on as
// the gateway does: streams are opened when a request goes up, read when its
// chunks come down, settled by usage, closed at the end or when the client
// leaves. There is no HTTP, no clock and no chance: a seed gives the same
// figures anywhere.
//
// Truth is not what the engine did in the run that taught the curve, which is
// too short to say at most levels, but the mean of what its steps were planned
// to take over millions of tokens under the same load.
//
// TestGoals runs every row with a few seeds; make accuracy runs the long form
// and prints the table that docs/CURVES-TABLE.md shows.
package accuracy

// Package learn runs the loop that keeps curves fresh: once a second it folds
// the book, pushes the deltas to the store, reads back the sums of all
// replicas, and hands the new curves on. It owns the only clock and the only
// goroutine of the learning side.
//
// A store that does not answer costs nothing on the request path: folding and
// fitting go on with what this replica knows, deltas wait, bounded by being
// added up, and go out when it is back. What was sent and not acknowledged is
// sent again unchanged and under the same number, so it counts once however
// often it arrives.
//
// Memory is the store of a gateway that shares with nobody.
package learn

// Package breaker decides when something that fails is left alone, and when one
// try may find out whether it is back.
//
// It is pure: now is an argument, nothing blocks or calls back, and a Breaker is
// used by one goroutine at a time. Who shares one holds a lock around it.
//
//	closed ── failures in a row, or half of a window's ──▶ open
//	open ── Wait is over ──▶ half-open, in which one try goes out
//	half-open ── the try failed ──▶ open; it worked ──▶ closed
//
// A verdict counts when it is given, however long the try took: what stalls until
// a deadline is known by nothing else. One of a try that began before the last
// change of state says nothing about now.
package breaker

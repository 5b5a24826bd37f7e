// Package logqueue stands between a log and whoever reads it: lines go into a
// bounded queue, and one goroutine writes them out. Who logs never waits, also
// while the reader stands still; what the queue has no room for is dropped and
// counted, and one line says so when lines flow again.
//
// The lines of requests are lost first: they leave a part of the queue to all
// others (warnings, errors, what the program does).
//
// Lines are whole: each Write is one line or several, with its line end, and is
// kept or dropped as a whole. They come out in the order in which they came.
package logqueue

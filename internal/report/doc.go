// Package report writes what the commands print: words, figures, tables and
// plots, for a terminal of any width and for pipes.
//
// Names come from files and from other machines. Nothing of theirs that a
// terminal obeys reaches it: what is written through a Writer, or as JSON by
// this package, holds no such character.
//
// A figure that is not known is NaN, and shown as a dash.
package report

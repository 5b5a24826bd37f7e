// Package bench measures what Pacer costs beside other proxies: in front of one
// bare-bones backend, under one load generator, in turns within one run.
//
// The control is F, a Go proxy of a few lines that reads the body first, and
// does nothing else. Figures are ratios to F's of the same round, so that what
// else the machine does falls on all of them alike. CPU is what the system
// counted for the proxy's own processes.
//
//	make bench
//
// Without -paired its test is short: it proves that every proxy passes all on,
// and that the figures are there.
package bench

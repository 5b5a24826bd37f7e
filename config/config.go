package config

import (
	"net/netip"
	"time"
)

// Config is one pacer.yaml, complete and valid. It is immutable, and so safe
// for concurrent use.
type Config struct {
	Listen   string // data port, host:port; port 0 = any free one
	Admin    Admin
	Store    Store
	Replicas int // gateways that share the backends until Redis tells; at least 1
	Log      Log
	TLS      TLS
	CORS     CORS
	Timeouts Timeouts
	Limits   Limits
	Backends []Backend // in the order of the file
	Routes   []Route   // in the order of the file
	Keys     []Key     // none = the data port is open

	// ExposeDecision sends the x-pacer-backend, -decision and -predicted-tps
	// headers although keys are configured. Without keys they are always sent.
	ExposeDecision bool

	// Hosts are names, in lower case, under which browsers may use the data port
	// while there are no keys, beside those that are nobody else's.
	Hosts []string

	// TrustedProxies are who is believed when it says for whom it forwards. Only
	// log lines show it. none = nobody is.
	TrustedProxies []netip.Prefix

	// files are those that Load read, as they were just before: the
	// configuration and what it names. nil after Parse.
	files stamps

	// Warnings are what Parse wants said though it is no error, by line, each
	// as FILE:LINE:COL: text.
	Warnings []string
}

// Admin is the admin port.
type Admin struct {
	Listen string // host:port
	Token  Secret // "" = changing calls are refused
}

// Log says what is logged, and how.
type Log struct {
	Level  string // debug | info | warn | error
	Format string // json | text
}

// TLS holds the files of the data port's certificate and key; both "" = plain.
type TLS struct{ Cert, Key string }

// CORS says which web pages may call the data port; no origins = none.
type CORS struct {
	Origins []string      // scheme://host[:port], or "*"
	MaxAge  time.Duration // how long a browser may remember the answer
}

// Timeouts are those of the data port and its backends; all above 0.
type Timeouts struct {
	Connect   time.Duration // to open a connection to a backend
	FirstByte time.Duration // from sending a request to the first byte of its answer
	Silence   time.Duration // between two reads from a backend
	Total     time.Duration // for a whole request
	Write     time.Duration // for one write to a client
	Drain     time.Duration // for running requests to finish when the program ends

	// Linger is how much of Drain new requests are still taken for, while
	// /readyz says no; at most half of Drain counts. 0 = not at all.
	Linger time.Duration
}

// Limits bounds what clients can make grow; sizes in bytes; all above 0.
type Limits struct {
	Body, Header int64 // of one request
	Streams      int   // requests at once
	Queue        int   // waiters in the line of one route
	Buffered     int64 // request bodies held at once, in all
}

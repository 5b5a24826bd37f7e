// Package clientconn is what the two HTTP ports have in common below their handlers:
// who may hold a connection, and how one ends whose client is still sending.
//
// Listen wraps the listener of an http.Server and bounds its connections. At
// the bound those go first whose clients have shown nothing: no valid key, no
// answer that runs. Early wraps the handlers. What they answer before they have
// read the body is on the wire at once, and what still comes is thrown away for
// a while, bounded in bytes and time, before the connection is closed: a client
// that sends on meanwhile would be reset, and lose the answer.
//
// A handler says what it knows of a client with Known and Answering.
package clientconn

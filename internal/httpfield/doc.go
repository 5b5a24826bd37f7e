// Package httpfield reads the names of HTTP headers, as net/textproto and httpguts do,
// in one pass over each name. All of it is safe for concurrent use.
package httpfield

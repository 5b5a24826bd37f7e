// Package api is the admin API in Go: the JSON that the admin port writes and
// that the commands read. Each type stands here once.
//
// In JSON, seconds are numbers, times are RFC 3339 in UTC, and what is not
// known is null. In Go, an unknown Number is NaN, which JSON does not have.
//
// openapi.json describes the same types for other languages. A test writes the
// file from the types and their comments, so the comments of this package are
// read by people who do not know Go.
package api

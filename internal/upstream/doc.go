// Package upstream is the table of the kinds of backends: a row each, which
// says all that differs in how they are reached, asked and looked at. It also
// holds the rules of what reaches every kind: base URLs and headers.
//
// Whoever adds a kind adds a row to table.go. What has a form of its own, as
// the query in Azure's URLs, is a function that the row names.
//
// Nothing here does I/O, and no message repeats a URL: a key may be in it.
package upstream

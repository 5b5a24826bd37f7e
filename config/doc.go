// Package config reads pacer.yaml: types, defaults, environment, validation.
//
// Parse is strict: an unknown field, a wrong type, a route to nowhere are
// errors, and every semantic problem is reported at once with its place and
// what to write instead. ${VAR} and ${VAR:-default} are expanded in parsed
// values, never in the text, so a secret may hold any character; $${ is a
// literal ${. An unset variable without default is a problem.
//
// Reading goes in three steps: tree bounds the text and parses it, a reader
// walks it as the tags of the types say, and check looks at what spans several parts. Parse does no
// I/O; Load also reads the files that a configuration names.
//
// A Config is immutable once parsed, with every default filled in: no reader
// asks again what zero means. Secrets print as "***", and no message shows a
// value that a variable put in.
package config

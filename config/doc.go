// Package config reads pacer.yaml: types, defaults, environment, validation.
//
// Parse is strict: an unknown field, a wrong type, a route to nowhere are
// errors, and every semantic problem is reported at once with its place and
// what to write instead. ${VAR} and ${VAR:-default} are expanded in parsed
// values, never in the text, so a secret may hold any character; $${ is a
// literal ${. An unset variable without default is a problem.
//
// A Config is immutable once parsed, with every default filled in: no reader
// asks again what zero means. Secrets print as "***".
package config

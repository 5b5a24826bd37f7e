// Package compose reads docker-compose.yml with Compose's own library, and runs what it
// puts together as processes of this machine: every command that stands there, with
// every file that is mounted. It is a module of its own so that the library's weight
// stays out of the program's.
//
//	make sdk
package compose

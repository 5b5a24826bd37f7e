// Package hosts tests gateways that stand apart: each process in a network namespace
// of its own, wires between them that are late, lose packets and are cut, clocks that
// are hours off, and stores that fail over under load. make hosts runs it, as root.
package hosts

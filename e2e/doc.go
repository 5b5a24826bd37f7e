// Package e2e tests the built program from outside, as its users meet it: real
// processes, real ports, a real Redis, real clients.
package e2e

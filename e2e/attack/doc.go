// Package attack tests the built program as those meet it who mean it harm, or
// are ill themselves: strangers, tenants, web pages, engines, whoever writes to
// the store or reads the log.
//
// list_test.go is the list, one name for each attack, and the same names stand
// in docs/OPERATIONS.md. While an attack runs a victim is served: a tenant who
// streams without pause, and a user who comes anew several times a second. What
// they saw is printed behind the list.
//
// make test runs the short form, make attack the full one.
package attack

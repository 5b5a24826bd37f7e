// Package chart renders the Helm chart with Helm's own code, and holds what comes of
// it against Kubernetes' types, its Pod Security Standards and the program itself. Its
// weight stays in a module of its own.
package chart

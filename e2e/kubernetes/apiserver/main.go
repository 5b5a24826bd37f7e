// Command apiserver is Kubernetes' own API server, for the tests of fleet/kubernetes:
// make kubernetes builds it. Its weight stays in a module of its own.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }

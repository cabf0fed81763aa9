// Command controlplane is the part of Kubernetes that the tests talk to, as one program: its first argument, or the name
// it is called by, says which part it is. Tests start one process for each part, so that one of them can be killed alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

const usage = "usage: etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl [ARGUMENT...]"

func main() {
	part := filepath.Base(os.Args[0])
	if part == "controlplane" && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		part = os.Args[0]
	}
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubectl":
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

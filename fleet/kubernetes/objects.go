package kubernetes

import (
	"strconv"
)

// endpointSlice is a part of the endpoints of a Service (discovery.k8s.io/v1).
type endpointSlice struct {
	Metadata    metadata
	AddressType string
	Endpoints   []endpoint
	Ports       []port
}

func (s *endpointSlice) meta() *metadata { return &s.Metadata }

type endpoint struct {
	Addresses  []string
	Conditions struct{ Ready, Serving, Terminating *bool } // nil: true, as ready, false
	TargetRef  *struct{ Kind, Name, Namespace, UID string }
}

type port struct {
	Name string
	Port int
}

// terminating reports whether e is about to end.
func (e *endpoint) terminating() bool {
	return e.Conditions.Terminating != nil && *e.Conditions.Terminating
}

// ready reports whether e takes requests.
func (e *endpoint) ready() bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// port is where s listens, as asked for: a number, a name, or "" for the only one
// or else usual; "" = nowhere.
func (s *endpointSlice) port(asked, usual string) string {
	if _, err := strconv.Atoi(asked); err == nil {
		return asked
	}
	for _, p := range s.Ports {
		if asked != "" && p.Name == asked || asked == "" && len(s.Ports) == 1 {
			return strconv.Itoa(p.Port)
		}
	}
	if asked != "" {
		return ""
	}
	return usual
}

// pod is a pod (v1).
type pod struct {
	Metadata metadata
	Status   struct {
		Phase      string
		PodIP      string
		Conditions []struct{ Type, Status string }
	}
}

func (p *pod) meta() *metadata { return &p.Metadata }

func (p *pod) ready() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// over reports whether nothing runs in p any more.
func (p *pod) over() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// inferencePool is one of the Gateway API Inference Extension, in its version v1,
// or v1alpha2, which writes its selector and its port otherwise.
type inferencePool struct {
	Metadata metadata
	Spec     struct {
		Selector         selector
		TargetPorts      []struct{ Number int }
		TargetPortNumber int
	}
}

func (p *inferencePool) meta() *metadata { return &p.Metadata }

// ports are those of each pod: one for each engine in it.
func (p *inferencePool) ports() (list []string) {
	for _, t := range p.Spec.TargetPorts {
		list = append(list, strconv.Itoa(t.Number))
	}
	if len(list) == 0 && p.Spec.TargetPortNumber > 0 {
		list = []string{strconv.Itoa(p.Spec.TargetPortNumber)}
	}
	return list
}

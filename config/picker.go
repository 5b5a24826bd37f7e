package config

// Picker is what an Envoy, or another proxy that speaks ext_proc, is told by pacer
// picker.
type Picker struct {
	// address that Envoy asks at, `host:port`, gRPC; with `tls` in its certificate's name. Whoever reaches it may do what clients may
	Listen string `yaml:"listen" is:"address" default:"127.0.0.1:9002"`
	// what becomes of a request that the picker has no room to judge (`limits.streams`): `open` lets Envoy send it where it likes,
	// `closed` answers 503. Where the picker is away altogether, Envoy goes by its own `failure_mode_allow`: set both alike
	Fail string `yaml:"fail" enum:"open,closed" default:"open"`
	// objectives that requests may name in `x-gateway-inference-objective`
	Objectives []Objective `yaml:"objectives" want:"a list of objectives" unset:"none: the header says nothing"`
}

// The words of Picker.Fail.
const (
	FailOpen   = "open"
	FailClosed = "closed"
)

// Objective is an InferenceObjective, as far as it concerns a request.
type Objective struct {
	// as requests name it
	Name string `yaml:"name" required:"nightly"`
	// class of the requests that name it and ask for none themselves
	Class string `yaml:"class" enum:"interactive,batch" required:"batch"`
}

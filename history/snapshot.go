package history

// Snapshot is how everything is at one moment. What is not known is NaN.
type Snapshot struct {
	Backends []Backend
	Routes   []Route
	Store    Store

	// Refused is why the configuration file is not in force as it is, in one line;
	// "" = it is.
	Refused string
}

// Health is whether requests are sent to a backend.
type Health uint8

// The states of a backend.
const (
	IsUp Health = iota
	IsDown
	IsProbed // it was down, and one request at a time finds out
	IsLoading
	IsDrained
)

// Backend is one backend.
type Backend struct {
	Name        string
	Health      Health
	Hung        bool   // it takes requests and shows no life
	Why         string // of IsDown: what its health page said; "" = nothing
	BreakerOpen bool   // or half open
	N, M        int
	Faults      []Fault // of its targets

	// Seen is how many tokens the own streams brought since the start, and Expected
	// how many they would have brought in that time before the engine changed.
	Seen, Expected float64

	Compared float64 // seconds of one sequence in which those tokens came

	// Scale is how fast the engine is by its curve, of what it was before it
	// changed.
	Scale float64
}

// Route is one route.
type Route struct {
	Name  string
	Goal  float64 // attainment; 0 = none
	Floor float64 // tokens/s; 0 = none
	Best  float64 // bound on the speed of a stream alone, of the fastest target that is known and does not carry the floor

	// Unattainable = all targets are known, and none would take a single stream.
	Unattainable bool

	Backends []string
	Free     float64 // users it would take
	Waiting  int     // in line

	// Capacity is how many streams its targets carry at its floor, Load how many
	// they have. Bound = Capacity is known, or believed; without a floor it is not.
	Capacity, Load int
	Bound          bool

	// Out is how many more those targets would carry whose backends are out of service.
	Out int
}

// Store is where curves are shared.
type Store struct{ Shared, Up bool }

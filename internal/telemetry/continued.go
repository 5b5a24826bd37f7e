package telemetry

// Fate is what became of a stream whose backend died in the middle of it, on a route
// whose streams go on elsewhere.
type Fate uint8

// The words of pacer_continued_total.
const (
	Continued     Fate = iota // another backend went on with it
	ContinueLost              // no other took it, and it broke off
	Uncontinuable             // it could not be continued, and broke off

	numFates
)

var fateNames = [numFates]string{"ok", "lost", "unfit"}

// Passage is one death of a backend in the middle of a stream.
type Passage struct {
	From string // the backend
	Fate Fate
}

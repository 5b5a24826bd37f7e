package router

// byOrder takes the first feasible target in the order of the configuration.
type byOrder struct{}

func (byOrder) Pick(c Choice) int {
	for i := range c.Len() {
		if c.Open(i) {
			return i
		}
	}
	return -1
}

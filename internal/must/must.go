// Package must ends a test where something fails that the test needs but is not
// about. It is for tests alone.
package must

// TB is what of a test is needed: *rapid.T has it, too.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get takes the results of a call, and returns what gives the value to a test, or
// ends the test if there was an error: text := must.Get(os.ReadFile(path))(t).
func Get[T any](value T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

package report

// UsageError marks a mistake in the command line or the configuration, for which
// the program ends with exit code 2.
type UsageError struct{ Err error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

//go:build !linux && !darwin

package doctor

// freeAt is how many bytes whoever runs this may still write where dir is; known is
// false where that cannot be told.
func freeAt(string) (bytes uint64, known bool) { return 0, false }

package config

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "***"

// Secret is a string that does not print: not through fmt, not through slog,
// and not as JSON, YAML or text. Two things fmt keeps for itself: it calls no
// methods on unexported fields, so a Secret in one stands bare when the struct
// is printed, and none for %p, which go vet refuses.
type Secret string

// String hides the value; Reveal returns it.
func (Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (Secret) GoString() string { return hidden }

// Format hides the value from every verb. Without it a verb that does not fit
// a string, such as %d, would print the value within its complaint.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// LogValue hides the value from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the value from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

package api

import (
	"encoding/json"
	"math"
	"strconv"
)

// Number is a figure; null when it is not known.
type Number float64

// Unknown is the Number that JSON shows as null.
func Unknown() Number { return Number(math.NaN()) }

// Positive returns f, or Unknown where f is 0, which stands for nothing.
func Positive(f float64) Number {
	if f > 0 {
		return Number(f)
	}
	return Unknown()
}

// Known reports whether n is a figure.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = Unknown()
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// Brief is a Number in the five digits that a drawing needs.
type Brief float64

// MarshalJSON implements json.Marshaler.
func (b Brief) MarshalJSON() ([]byte, error) { return appendBrief(nil, float64(b)), nil }

// Line is a list of Brief figures, encoded in one go.
type Line []float64

// MarshalJSON implements json.Marshaler.
func (l Line) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 8*len(l)+2), '[')
	for i, f := range l {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendBrief(out, f)
	}
	return append(out, ']'), nil
}

// appendBrief appends f in at most five digits. Their form with an exponent,
// 1.2346e+06, is JSON too.
func appendBrief(out []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(out, "null"...)
	}
	return strconv.AppendFloat(out, f, 'g', 5, 64)
}

// Encoded is a T that was encoded before, so that many listeners are sent the
// same bytes.
type Encoded[T any] []byte

// Encode encodes v.
func Encode[T any](v T) (Encoded[T], error) {
	data, err := json.Marshal(v)
	return data, err
}

// MarshalJSON implements json.Marshaler.
func (e Encoded[T]) MarshalJSON() ([]byte, error) { return e, nil }

// UnmarshalJSON implements json.Unmarshaler.
func (b *Brief) UnmarshalJSON(data []byte) error { return (*Number)(b).UnmarshalJSON(data) }

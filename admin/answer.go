package admin

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// number is a figure in JSON: null when it is NaN or infinite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(f)
}

// brief is a number with the five digits that a drawing needs.
type brief float64

// MarshalJSON implements json.Marshaler.
func (b brief) MarshalJSON() ([]byte, error) { return appendBrief(nil, float64(b)), nil }

// line is a list of brief numbers, encoded in one go.
type line []float64

// MarshalJSON implements json.Marshaler.
func (l line) MarshalJSON() ([]byte, error) {
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

// positive returns f, or NaN, which is null in JSON, where 0 stands for
// nothing.
func positive(f float64) number {
	if f > 0 {
		return number(f)
	}
	return number(math.NaN())
}

// instant returns t in UTC for JSON, nil when it never was.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// refusal has the shape of the data port's errors.
type refusal struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

func fail(w http.ResponseWriter, status int, code, message string) {
	var r refusal
	r.Error.Message, r.Error.Type, r.Error.Code = message, "invalid_request_error", code
	send(w, status, r)
}

// badQuery refuses the query parameter param, or with "" all of the query.
func badQuery(w http.ResponseWriter, param, message string) {
	var r refusal
	r.Error.Message, r.Error.Type, r.Error.Code = message, "invalid_request_error", "invalid_query"
	if param != "" {
		r.Error.Param = &param
	}
	send(w, http.StatusBadRequest, r)
}

func send(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "not_found", "nothing is here; the admin port has /, /metrics, /healthz, /api/v1/profiles, /api/v1/routes, /api/v1/decisions, /api/v1/explain, /api/v1/events and /api/v1/backends/NAME/drain or resume")
}

func wrongMethod(w http.ResponseWriter, r *http.Request) {
	allowed := http.MethodGet
	if r.URL.Path == pathExplain || strings.HasPrefix(r.URL.Path, "/api/v1/backends/") {
		allowed = http.MethodPost
	}
	w.Header().Set("Allow", allowed)
	fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "only "+allowed+" is answered here")
}

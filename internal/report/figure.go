package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

func known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Figure writes x in so many digits behind the point.
func Figure[F ~float64](x F, digits int) string {
	if !known(float64(x)) {
		return "–"
	}
	return strconv.FormatFloat(float64(x), 'f', digits, 64)
}

// Positive is Figure where 0 stands for nothing, and is a dash.
func Positive[F ~float64](x F, digits int) string {
	if !(x > 0) {
		return "–"
	}
	return Figure(x, digits)
}

// Percent writes a share, never rounded up to all, or over a goal.
func Percent[F ~float64](share F) string {
	if !known(float64(share)) {
		return "–"
	}
	return strconv.FormatFloat(math.Floor(float64(share)*1000+1e-6)/10, 'f', 1, 64) + " %"
}

// Brief writes x in three digits, or as many as it has before the point.
func Brief(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Cell writes x in a CSV. Unknown is empty.
func Cell[F ~float64](x F) string {
	if !known(float64(x)) {
		return ""
	}
	return strconv.FormatFloat(float64(x), 'g', 6, 64)
}

// Thousands writes a whole number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes a large number short.
func Count(x float64) string {
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.1f G", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.1f M", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.0f k", x/1e3)
	}
	return fmt.Sprintf("%.0f", x)
}

// Seconds writes a time to the first token, or in line.
func Seconds(s float64) string {
	if s >= 100 {
		return fmt.Sprintf("%.0fs", s)
	}
	if s == 0 {
		return "0"
	}
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}

// Ago says how long something is past, in its two leading units at most.
func Ago(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

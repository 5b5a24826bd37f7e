package usage

import "time"

// Period is how long a budget lasts. Periods begin at midnight in UTC, weeks on
// Monday.
type Period uint8

// The periods; the zero value is a month.
const (
	Month Period = iota
	Week
	Day
)

// PeriodOf returns the period of that name; anything else is a month.
func PeriodOf(name string) Period {
	switch name {
	case "day":
		return Day
	case "week":
		return Week
	}
	return Month
}

// String returns month, week or day.
func (p Period) String() string { return [...]string{"month", "week", "day"}[p] }

// Start returns when the period began that t lies in.
func (p Period) Start(t time.Time) time.Time {
	t = t.UTC()
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch p {
	case Day:
		return day
	case Week:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	}
	return day.AddDate(0, 0, 1-day.Day())
}

// End returns when the period that begins at start is over.
func (p Period) End(start time.Time) time.Time {
	switch p {
	case Day:
		return start.AddDate(0, 0, 1)
	case Week:
		return start.AddDate(0, 0, 7)
	}
	return start.AddDate(0, 1, 0)
}

package usage

import (
	"cmp"
	"slices"
)

// Dimensions are what usage can be asked by.
var Dimensions = []string{"key", "team", "route", "backend", "model", "tags", "hour", "day"}

// Row is what was used of one combination of the dimensions that were asked for.
// Those that were not are empty.
type Row struct {
	Hour Hour // of by hour, and of by day its first one; 0 = neither
	Of
	Sums
}

// Table sums up cells by some of Dimensions. It is not safe for concurrent use.
type Table struct {
	by        []string
	hour, day bool // what by says of time
	rows      map[cellKey]*Row
}

// NewTable returns an empty table of rows that are told apart by what by names.
func NewTable(by []string) *Table {
	return &Table{by: by, hour: slices.Contains(by, "hour"), day: slices.Contains(by, "day"), rows: map[cellKey]*Row{}}
}

// Add adds cells.
func (t *Table) Add(cells []Cell) {
	for _, c := range cells {
		at := cellKey{of: c.Of.only(t.by)}
		switch {
		case t.hour:
			at.hour = c.Hour
		case t.day:
			at.hour = c.Hour.Day()
		}
		r := t.rows[at]
		if r == nil {
			r = &Row{Hour: at.hour, Of: at.of}
			t.rows[at] = r
		}
		r.Add(c.Sums)
	}
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Rows are all rows, in the order of CompareRows.
func (t *Table) Rows() []Row {
	rows := make([]Row, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, CompareRows)
	return rows
}

// CompareRows has the oldest first, and of one time the dearest. No two rows of one
// table are the same to it.
func CompareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Input+b.Output, a.Input+a.Output), compareOf(a.Of, b.Of))
}

// Rows sums up cells by some of Dimensions.
func Rows(cells []Cell, by []string) []Row {
	t := NewTable(by)
	t.Add(cells)
	return t.Rows()
}

// field is the name that dimension stands for; nil = it is none of names.
func (o *Of) field(dimension string) *string {
	switch dimension {
	case "key":
		return &o.Key
	case "team":
		return &o.Team
	case "route":
		return &o.Route
	case "backend":
		return &o.Backend
	case "model":
		return &o.Model
	case "tags":
		return &o.Tags
	}
	return nil
}

// Name is the name of one of Dimensions; "" = there is none.
func (o Of) Name(dimension string) string {
	if at := o.field(dimension); at != nil {
		return *at
	}
	return ""
}

// only returns o with what by does not name left out.
func (o Of) only(by []string) Of {
	var out Of
	for _, dimension := range by {
		if at := out.field(dimension); at != nil {
			*at = o.Name(dimension)
		}
	}
	return out
}

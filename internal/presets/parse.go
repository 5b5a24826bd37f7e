package presets

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed curves.csv
var curvesCSV string

// What makes a published curve unfit for a preset.
const (
	// fullTTFT is where the engine was full, in ms: the level then counts
	// users who waited, not users who were served together.
	fullTTFT = 5000
	// highestStart is the highest lowest level: a curve that starts above it
	// says nothing about a few users.
	highestStart = 8
	// promptTokens is the prompt length that the presets share. A curve taken
	// at another one has another prefill load in every point.
	promptTokens = 1024
	// copiedCurve is c0451 under another model's name.
	copiedCurve = "c0541"
)

// row is one line of the file.
type row struct {
	curve, model, gpu, engine string
	promptTokens, users       int
	tps, ttft                 float64 // tokens/s of one user; ms
}

// parse reads the file and keeps the curves fit for use, by name.
func parse(text string) ([]Preset, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = 8
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("presets: %w", err)
	}
	if len(records) == 0 {
		return nil, errors.New("presets: no header line")
	}
	var curves [][]row
	for _, record := range records[1:] {
		line, err := parseRow(record)
		if err != nil {
			return nil, err
		}
		if last := len(curves) - 1; last >= 0 && curves[last][0].curve == line.curve {
			curves[last] = append(curves[last], line)
			continue
		}
		curves = append(curves, []row{line})
	}
	var list []Preset
	for _, rows := range curves {
		if p, ok := preset(rows); ok {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Preset) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func parseRow(record []string) (row, error) {
	l := row{curve: record[0], model: record[1], gpu: record[2], engine: record[3]}
	var err [4]error
	l.promptTokens, err[0] = strconv.Atoi(record[4])
	l.users, err[1] = strconv.Atoi(record[5])
	l.tps, err[2] = strconv.ParseFloat(record[6], 64)
	l.ttft, err[3] = strconv.ParseFloat(record[7], 64)
	if e := cmp.Or(err[:]...); e != nil {
		return row{}, fmt.Errorf("presets: curve %s: %w", l.curve, e)
	}
	return l, nil
}

// preset makes a preset of the rows of one curve, if it is fit for one.
func preset(rows []row) (Preset, bool) {
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.users, b.users) })
	low := rows[0]
	if low.curve == copiedCurve || low.users > highestStart || low.promptTokens != promptTokens {
		return Preset{}, false
	}
	p := Preset{
		Model: modelName(low.model), GPU: strings.TrimSuffix(strings.ToLower(low.gpu), "_sxm"), Engine: low.engine,
		SecondsPerPromptToken: low.ttft / 1000 / float64(low.promptTokens),
	}
	p.Name = p.Model + "/" + p.GPU + "/" + p.Engine
	for _, r := range rows {
		if r.ttft <= fullTTFT {
			p.Points = append(p.Points, Point{N: r.users, TPS: r.tps})
		}
	}
	return p, len(p.Points) > 0
}

// modelName is a published name without vendor and -instruct, in lower case.
func modelName(published string) string {
	name := strings.ToLower(published)
	if _, after, ok := strings.Cut(name, "/"); ok {
		name = after
	}
	return strings.TrimSuffix(name, "-instruct")
}

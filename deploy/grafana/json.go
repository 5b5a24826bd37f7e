package grafana

import (
	"strings"

	"github.com/pacer-dev/pacer/internal/telemetry"
)

// The shape of Grafana's dashboards, as far as it is used.
type (
	dashboard struct {
		UID           string   `json:"uid"`
		Title         string   `json:"title"`
		Tags          []string `json:"tags"`
		SchemaVersion int      `json:"schemaVersion"`
		Editable      bool     `json:"editable"`
		Refresh       string   `json:"refresh"`
		Time          span     `json:"time"`
		Templating    struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Panels []widget `json:"panels"`
	}
	span struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	variable struct {
		Name       string  `json:"name"`
		Type       string  `json:"type"`
		Query      string  `json:"query"`
		Datasource *source `json:"datasource,omitempty"`
		Refresh    int     `json:"refresh,omitempty"`
		IncludeAll bool    `json:"includeAll,omitempty"`
		Multi      bool    `json:"multi,omitempty"`
	}
	source struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	widget struct {
		ID          int      `json:"id"`
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Description string   `json:"description,omitempty"`
		Position    position `json:"gridPos"`
		Datasource  *source  `json:"datasource,omitempty"`
		FieldConfig *fields  `json:"fieldConfig,omitempty"`
		Targets     []target `json:"targets,omitempty"`
	}
	position struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	}
	fields struct {
		Defaults struct {
			Unit string `json:"unit"`
			Min  int    `json:"min"`
		} `json:"defaults"`
	}
	target struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	}
)

// Of the grid, which is 24 wide.
const (
	gridWidth   = 24
	panelHeight = 8
)

// prometheusSource is the data source that the reader chooses.
var prometheusSource = &source{"prometheus", "${datasource}"}

func (b board) json(sections []section, list []telemetry.Metric) dashboard {
	d := dashboard{
		UID: b.uid, Title: b.title, Tags: []string{"pacer"}, SchemaVersion: 39, Editable: true,
		Refresh: "30s", Time: span{"now-1h", "now"},
	}
	d.Templating.List = []variable{
		{Name: "datasource", Type: "datasource", Query: "prometheus"},
		{Name: b.by, Type: "query", Query: "label_values(" + b.of + ", " + b.by + ")", Datasource: prometheusSource, Refresh: 2, IncludeAll: true, Multi: true},
	}
	x, y := 0, 0
	add := func(w widget, width, height int) {
		if x+width > gridWidth {
			x, y = 0, y+panelHeight
		}
		w.ID, w.Position = len(d.Panels)+1, position{x, y, width, height}
		d.Panels = append(d.Panels, w)
		x += width
	}
	for _, s := range sections {
		if x > 0 {
			x, y = 0, y+panelHeight
		}
		add(widget{Type: "row", Title: s.title}, gridWidth, 1)
		x, y = 0, y+1
		for _, p := range s.panels {
			width := gridWidth / 3
			if p.wide {
				width = gridWidth / 2
			}
			add(p.widget(list), width, panelHeight)
		}
	}
	return d
}

func (p panel) widget(list []telemetry.Metric) widget {
	w := widget{Type: "timeseries", Title: p.title, Datasource: prometheusSource, FieldConfig: &fields{}}
	w.FieldConfig.Defaults.Unit = p.unit
	for i, q := range p.queries {
		w.Targets = append(w.Targets, target{string(rune('A' + i)), q.expr, q.legend})
	}
	var help []string
	for _, m := range list {
		for _, q := range p.queries {
			for _, name := range metricName.FindAllString(q.expr, -1) {
				if name == m.Name || name == m.Name+"_bucket" {
					help = append(help, m.Help)
				}
			}
		}
	}
	w.Description = strings.Join(help, "\n\n")
	return w
}

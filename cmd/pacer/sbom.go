package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
)

// sbom is a bill of materials in the form of CycloneDX 1.6, as much of it as is
// known of a Go program: https://cyclonedx.org/docs/1.6/json/.
type sbom struct {
	Schema       string           `json:"$schema"`
	Format       string           `json:"bomFormat"`
	SpecVersion  string           `json:"specVersion"`
	Version      int              `json:"version"`
	Metadata     sbomMetadata     `json:"metadata"`
	Components   []sbomComponent  `json:"components"`
	Dependencies []sbomDependency `json:"dependencies"`
}

type sbomMetadata struct {
	Timestamp string        `json:"timestamp,omitempty"` // of the commit: the same build gives the same text
	Component sbomComponent `json:"component"`
}

type sbomComponent struct {
	Type       string         `json:"type"`
	Ref        string         `json:"bom-ref"`
	Name       string         `json:"name"`
	Version    string         `json:"version"`
	PURL       string         `json:"purl"`
	Properties []sbomProperty `json:"properties,omitempty"`
}

type sbomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type sbomDependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// writeSBOM writes what the Go tool noted in this program.
func writeSBOM(w io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without its list of modules")
	}
	b := currentBuild()
	self := component("application", info.Main.Path, b.Version)
	self.Name = "pacer"
	if b.Revision != "" {
		self.Properties = append(self.Properties, sbomProperty{"pacer:commit", b.Revision})
	}
	list := sbom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   sbomMetadata{Timestamp: b.Date, Component: self},
		Components: []sbomComponent{component("library", "std", strings.TrimPrefix(runtime.Version(), "go"))},
	}
	for _, m := range info.Deps {
		sum := m.Sum
		if m.Replace != nil {
			m = m.Replace
			sum = m.Sum
		}
		c := component("library", m.Path, m.Version)
		if sum != "" { // that of go.sum
			c.Properties = []sbomProperty{{"go:sum", sum}}
		}
		list.Components = append(list.Components, c)
	}
	all := sbomDependency{Ref: self.Ref}
	for _, c := range list.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	list.Dependencies = []sbomDependency{all}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// component names a module by its package URL.
func component(kind, path, version string) sbomComponent {
	purl := "pkg:golang/" + path + "@" + url.PathEscape(version)
	return sbomComponent{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

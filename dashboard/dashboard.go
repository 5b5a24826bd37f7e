package dashboard

import (
	"embed"
	"io/fs"
)

//go:embed page
var embedded embed.FS

// Files returns the files of the page, without directories; index.html is the
// page itself.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "page")
	if err != nil {
		panic("dashboard: " + err.Error()) // only for a bad name
	}
	return files
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// wheelTags are the platforms of a wheel, as Python has them. The program is static, so
// it runs with every C library.
var wheelTags = map[target]string{
	{"linux", "amd64"}:   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	{"linux", "arm64"}:   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	{"darwin", "amd64"}:  "macosx_12_0_x86_64",
	{"darwin", "arm64"}:  "macosx_12_0_arm64",
	{"windows", "amd64"}: "win_amd64",
	{"windows", "arm64"}: "win_arm64",
}

// wheels makes pacer-gateway for pip: the program as a script, and no Python.
func (r *release) wheels(context.Context) error {
	version := python(r.version)
	for _, t := range r.targets {
		program, err := os.ReadFile(r.programs[t])
		if err != nil {
			return err
		}
		readme, err := r.read("release/README.pip.md")
		if err != nil {
			return err
		}
		info := fmt.Sprintf("pacer_gateway-%s.dist-info/", version)
		licenses, err := r.texts(map[string]string{info + "licenses/LICENSE": "LICENSE", info + "licenses/licenses.txt": "cmd/pacer/licenses.txt"})
		if err != nil {
			return err
		}
		var tags strings.Builder
		for tag := range strings.SplitSeq(wheelTags[t], ".") {
			fmt.Fprintf(&tags, "Tag: py3-none-%s\n", tag)
		}
		files := append([]entry{{fmt.Sprintf("pacer_gateway-%s.data/scripts/%s", version, t.file()), 0o755, program}}, licenses...)
		files = append(files,
			entry{info + "METADATA", 0o644, fmt.Appendf(nil, metadata, version, readme)},
			entry{info + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: pacer-release\nRoot-Is-Purelib: false\n" + tags.String())},
		)
		var record strings.Builder
		for _, f := range files {
			sum := sha256.Sum256(f.data)
			fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
		}
		fmt.Fprintf(&record, "%sRECORD,,\n", info)
		data, err := zipped(append(files, entry{info + "RECORD", 0o644, []byte(record.String())}), r.date)
		if err == nil {
			err = r.write(fmt.Sprintf("pacer_gateway-%s-py3-none-%s.whl", version, wheelTags[t]), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const metadata = `Metadata-Version: 2.4
Name: pacer-gateway
Version: %s
Summary: A gateway that keeps a tokens-per-second floor over inference backends
License-Expression: Apache-2.0
License-File: LICENSE
License-File: licenses.txt
Project-URL: Homepage, https://github.com/pacer-dev/pacer
Requires-Python: >=3.8
Description-Content-Type: text/markdown

%s`

package main

import (
	"regexp"
	"strings"
)

var released = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(-[0-9A-Za-z.-]+)?$`)

// described is what git describe says between two releases: v1.2.3-14-gabcdef0.
var described = regexp.MustCompile(`^-[0-9]+-g[0-9a-f]+(-dirty)?$`)

// semantic is a version as semver has it. A build of no release is before all of them.
func semantic(version, commit string) string {
	if m := released.FindStringSubmatch(version); m != nil && !described.MatchString(m[2]) && !strings.HasSuffix(m[2], "-dirty") {
		return m[1] + m[2]
	}
	if len(commit) < 7 {
		return "0.0.0-dev"
	}
	return "0.0.0-dev.g" + commit[:7]
}

// python is v as PEP 440 has it.
func python(v string) string {
	plain, pre, _ := strings.Cut(v, "-")
	if pre == "" {
		return plain
	}
	if hash, ok := strings.CutPrefix(pre, "dev.g"); ok {
		return plain + ".dev0+g" + hash
	}
	if pre == "dev" {
		return plain + ".dev0"
	}
	if m := regexp.MustCompile(`^(alpha|beta|rc)\.?([0-9]+)$`).FindStringSubmatch(pre); m != nil {
		return plain + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[1]] + m[2]
	}
	return plain + ".dev0+" + regexp.MustCompile(`[^0-9A-Za-z.]`).ReplaceAllString(pre, ".")
}

package command

import "runtime/debug"

// sourceVersion is the version of this source. It ends in -dev, except in the commit of a release. tools/release writes both.
const sourceVersion = "v0.0.1-dev"

// The linker writes these. released is the version of a release or of a snapshot: see .goreleaser.yaml. commit is the
// one that make build sees.
var released, commit string

// version returns the version of the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return versionOf(info, released, commit)
}

// versionOf prefers the version of the module: go install notes it, and so does go build in a clone, unless -buildvcs=false
// is in GOFLAGS or the clone is a worktree. A release is built without these marks, and has released. Otherwise it is the
// version of the source, with the commit if it is known.
func versionOf(info *debug.BuildInfo, released, commit string) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	switch {
	case released != "":
		return released
	case commit != "":
		return sourceVersion + "+" + commit
	}
	return sourceVersion
}

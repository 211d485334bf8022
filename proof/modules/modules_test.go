package modules_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// most bounds the modules of a user of the library. There were 34 when this was written, and 155 while all was one module.
const most = 36

// apart are modules that no go.work and no release has: they require much, and nothing of ours.
var apart = []string{"tools", "tools/goreleaser", "proof/deploy"}

// heavy are modules that a user of the library must not have to follow.
func heavy(t *testing.T, path string) bool {
	t.Helper()
	return hasPrefix(path, slices.Concat(slices.Concat(slices.Collect(maps.Values(clients(t)))...), []string{
		"github.com/cloudevents/", "github.com/fergusstrange/", "github.com/pressly/goose", "github.com/prometheus/",
		"go.opentelemetry.io/otel/sdk", "google.golang.org/api", "gocloud.dev", "github.com/aws/", "github.com/Azure/", ours + "/",
	}))
}

// clients are the owners of what each sink with a module of its own needs, and no other module of the tree does. What
// Go itself and Google have for everybody is of no sink.
func clients(t *testing.T) map[string][]string {
	t.Helper()
	library := requires(t, ".")
	all := map[string][]string{}
	for _, dir := range directories(t, root) {
		sink, ok := strings.CutPrefix(dir, "sinks/")
		if !ok {
			continue
		}
		for _, path := range requires(t, dir) {
			parts := strings.Split(path, "/")
			if !slices.Contains(library, path) && !hasPrefix(path, []string{ours, "google.golang.org/", "golang.org/", "github.com/google/"}) {
				all[sink] = append(all[sink], strings.Join(parts[:2], "/")+"/")
			}
		}
		require.NotEmpty(t, all[sink], "the module of %s has no client: why is it one?", sink)
	}
	require.Contains(t, all["kafka"], "github.com/twmb/")
	require.Contains(t, all["pubsub"], "cloud.google.com/go/")
	return all
}

// requires are the modules that the packages of a module import.
func requires(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.ParseLax("go.mod", text, nil)
	require.NoError(t, err)
	var all []string
	for _, r := range file.Require {
		if !r.Indirect {
			all = append(all, r.Mod.Path)
		}
	}
	return all
}

func hasPrefix(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

const library = `package main

import (
	_ "github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	_ "github.com/ordered-dispatcher/ordered-dispatcher/migrations"
	_ "github.com/ordered-dispatcher/ordered-dispatcher/processor"
	_ "github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func main() {}
`

const withGRPC = `package main

import _ "google.golang.org/grpc"
`

// service makes a user's module that requires the library, and more.
func (r *release) service(t *testing.T, more string, files map[string]string) user {
	t.Helper()
	from := t.TempDir()
	files["go.mod"] = "module example.com/service\n\ngo 1.26.0\n\nrequire " + ours + " " + r.version + "\n" + more
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	u := r.newUser(t, from)
	u.run(t, "build", "-o", "service", ".")
	return u
}

func TestLibrary_BringsFewModules(t *testing.T) {
	u := get(t).service(t, "", map[string]string{"main.go": library})
	all := u.modules(t)
	require.LessOrEqual(t, len(all), most, all)
	for path := range all {
		require.False(t, heavy(t, path), path)
		require.NotEqual(t, "google.golang.org/grpc", path)
	}
}

func TestLibrary_LeavesAServiceItsOlderGRPC(t *testing.T) {
	const grpc = "v1.70.0"
	u := get(t).service(t, "\nrequire google.golang.org/grpc "+grpc+"\n", map[string]string{"main.go": library, "grpc.go": withGRPC})
	all := u.modules(t)
	require.Equal(t, grpc, all["google.golang.org/grpc"])
	for path := range all {
		// grpc's own go.mod has these
		ofGRPC := path == "cloud.google.com/go/compute/metadata" || strings.HasPrefix(path, "go.opentelemetry.io/otel/sdk")
		require.False(t, heavy(t, path) && !ofGRPC, path)
	}
}

// A user of one broker follows no client of another one.
func TestSinks_BringTheirOwnClientAlone(t *testing.T) {
	r := get(t)
	all := clients(t)
	for sink := range all {
		text := "package main\n\nimport _ \"" + ours + "/sinks/" + sink + "\"\n\nfunc main() {}\n"
		u := r.service(t, "\nrequire "+ours+"/sinks/"+sink+" "+r.version+"\n", map[string]string{"main.go": text})
		modules := u.modules(t)
		require.Equal(t, r.version, modules[ours+"/sinks/"+sink])
		for other, foreign := range all {
			for path := range modules {
				require.False(t, other != sink && hasPrefix(path, foreign), "%s: %s", sink, path)
			}
		}
	}
}

func TestInstall_TheProgramOfAVersion(t *testing.T) {
	r := get(t)
	u := r.newUser(t, t.TempDir())
	u.run(t, "install", ours+"/cmd/ordered-dispatcher@"+r.version)
	program := filepath.Join(u.dir, "bin", "ordered-dispatcher")
	version, err := exec.Command(program, "--version").CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, r.version, strings.TrimSpace(string(version)))
	linked := u.linked(t, program)
	require.Contains(t, linked, ours+"/sinks/kafka")
	require.Contains(t, linked, ours+"/stores/buckets")
	for _, path := range []string{"github.com/fergusstrange/embedded-postgres", "github.com/stretchr/testify", ours + "/proof"} {
		require.NotContains(t, linked, path)
	}
}

// The example of a sink of one's own is a module of a user. It has no broker that it does not name.
func TestOwnSink_BuildsTheDaemonInAnotherModule(t *testing.T) {
	r := get(t)
	u := r.newUser(t, filepath.Join(r.tree, "examples", "own-sink"))
	u.run(t, "build", "-o", "own-dispatcher", ".")
	program := filepath.Join(u.dir, "own-dispatcher")
	check := exec.Command(program, "check", "-c", filepath.Join(u.dir, "dispatcher.yaml"))
	check.Env = append(os.Environ(), "DATABASE_URL=postgres://localhost/db", "COLUMNS=9999")
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the file is valid (processes: orders)")
	for _, path := range u.linked(t, program) {
		require.False(t, heavy(t, path) && path != ours+"/command" && !strings.HasPrefix(path, "github.com/prometheus/"), path)
	}

	file := filepath.Join(u.dir, "kafka.yaml")
	require.NoError(t, os.WriteFile(file, []byte("processes: {a: {source: {table: t}, start: end, sink: {kafka: {brokers: [h], topic: t}}}}"), 0o600))
	check = exec.Command(program, "check", "-c", file)
	check.Env = append(os.Environ(), "DATABASE_URL=postgres://localhost/db", "COLUMNS=9999")
	out, err = check.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "kafka")
	require.Contains(t, string(out), "spool, webhook")
}

func TestRelease_TagsEveryModule(t *testing.T) {
	r := get(t)
	want := []string{r.version}
	for _, dir := range directories(t, r.tree) {
		if dir != "." && !slices.Contains(apart, dir) && !strings.HasPrefix(dir, "examples/") {
			want = append(want, dir+"/"+r.version)
		}
	}
	slices.Sort(want)
	require.Equal(t, want, r.tags)
	require.Equal(t, []string{r.version}, versions(t, r.tree))
}

func TestRelease_DoesNothingUnlessItIsAskedTo(t *testing.T) {
	r := get(t)
	out, err := in(r.tree, gitEnv(), "tools/release", "v0.0.2")
	require.NoError(t, err)
	require.Contains(t, out, "would tag sinks/kafka/v0.0.2")
	tags, err := in(r.tree, nil, "git", "tag")
	require.NoError(t, err)
	require.Equal(t, r.tags, strings.Fields(tags))
	require.Equal(t, []string{r.version}, versions(t, r.tree))
}

func TestRelease_Refuses(t *testing.T) {
	r := get(t)
	for argument, want := range map[string]string{
		r.version: "the tag " + r.version + " exists",
		"1.2.3":   "give a version such as v1.2.3",
		"v2.0.0":  "from v2 on each module needs another path",
	} {
		_, err := in(r.tree, gitEnv(), "tools/release", argument, "--tag")
		require.ErrorContains(t, err, want)
	}
	added := filepath.Join(r.tree, "added.txt")
	require.NoError(t, os.WriteFile(added, nil, 0o600))
	defer os.Remove(added)
	_, err := in(r.tree, gitEnv(), "tools/release", "v0.0.2", "--tag")
	require.ErrorContains(t, err, "changes that are not committed")
}

// All modules are released in one version, so they require each other in one version.
func TestVersions_AreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	require.Len(t, versions(t, root), 1)
}

func TestGoWork_HasEveryModule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	require.NoError(t, err)
	work, err := modfile.ParseWork("go.work", text, nil)
	require.NoError(t, err)
	var used []string
	for _, use := range work.Use {
		used = append(used, filepath.ToSlash(filepath.Clean(use.Path)))
	}
	all := slices.DeleteFunc(directories(t, root), func(dir string) bool { return slices.Contains(apart, dir) })
	require.ElementsMatch(t, all, used)
}

// What proves the program does not come along with it.
func TestGoMod_NothingThatShipsRequiresTheProofs(t *testing.T) {
	t.Parallel()
	for _, dir := range directories(t, root) {
		for _, r := range goMod(t, root, dir).Require {
			require.NotEqual(t, ours+"/proof", r.Mod.Path, dir)
			require.False(t, dir != "proof" && strings.Contains(r.Mod.Path, "embedded-postgres"), dir)
		}
	}
}

// go install …@version refuses a module with a line replace.
func TestGoMod_ReplacesNothing(t *testing.T) {
	t.Parallel()
	for _, dir := range directories(t, root) {
		file := goMod(t, root, dir)
		require.Empty(t, file.Replace, dir)
		require.Empty(t, file.Exclude, dir)
		if dir != "." && !strings.HasPrefix(dir, "examples/") {
			require.Equal(t, ours+"/"+dir, file.Module.Mod.Path)
		}
	}
}

// directories are those of the modules.
func directories(t *testing.T, tree string) []string {
	t.Helper()
	files, err := in(tree, nil, "git", "ls-files", "--cached", "--others", "--exclude-standard", "go.mod", "*/go.mod")
	require.NoError(t, err)
	var all []string
	for _, file := range strings.Fields(files) {
		all = append(all, filepath.ToSlash(filepath.Dir(file)))
	}
	return all
}

func goMod(t *testing.T, tree, dir string) *modfile.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, dir, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.Parse(filepath.Join(dir, "go.mod"), text, nil)
	require.NoError(t, err)
	return file
}

// versions are those in which modules of ours are required, and replaced by go.work.
func versions(t *testing.T, tree string) []string {
	t.Helper()
	var all []string
	for _, dir := range directories(t, tree) {
		for _, r := range goMod(t, tree, dir).Require {
			if r.Mod.Path == ours || strings.HasPrefix(r.Mod.Path, ours+"/") {
				all = append(all, r.Mod.Version)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(tree, "go.work"))
	require.NoError(t, err)
	work, err := modfile.ParseWork("go.work", text, nil)
	require.NoError(t, err)
	require.NotEmpty(t, work.Replace)
	for _, r := range work.Replace {
		all = append(all, r.Old.Version)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Python writes a pre-release that it does not know as a local version.
func TestRelease_GivesTheReceiversOfOtherLanguagesItsVersion(t *testing.T) {
	r := get(t)
	number := strings.TrimPrefix(r.version, "v")
	for file, want := range map[string][]string{
		"python/pyproject.toml":        {"version = \"" + strings.Replace(number, "-", ".dev0+", 1) + "\""},
		"typescript/package.json":      {"\"version\": \"" + number + "\","},
		"typescript/package-lock.json": {"\"version\": \"" + number + "\",\n  \"lockfileVersion\"", "\"version\": \"" + number + "\",\n      \"license\""},
		"java/pom.xml":                 {"<artifactId>ordered-inbox</artifactId>\n  <version>" + number + "</version>"},
	} {
		before, err := os.ReadFile(filepath.Join(root, "receivers", file))
		require.NoError(t, err)
		after, err := in(r.tree, nil, "git", "show", r.tags[0]+":receivers/"+file)
		require.NoError(t, err)
		for _, text := range want {
			require.Contains(t, after, text, file)
		}
		lines, changed := strings.Split(after, "\n"), 0
		for i, line := range strings.Split(string(before), "\n") {
			if line != lines[i] {
				changed++
			}
		}
		require.Equal(t, len(want), changed, "%s: the versions of other packages stay", file)
	}
}

// Go stamps no version into a program of an archive of the source, so the source has one.
func TestRelease_TheSourceHasItsVersionAndThenTheNextOne(t *testing.T) {
	r := get(t)
	for revision, want := range map[string]string{r.version: r.version, "HEAD": "v0.0.1-dev"} {
		text, err := in(r.tree, nil, "git", "show", revision+":command/version.go")
		require.NoError(t, err)
		require.Contains(t, text, "const sourceVersion = \""+want+"\"\n", revision)
	}
	out, err := in(r.tree, gitEnv(), "tools/release", "v1.2.3")
	require.NoError(t, err)
	require.Contains(t, out, "would then write v1.2.4-dev into command/version.go")
}

package deploy

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const unit = "usr/lib/systemd/system/ordered-dispatcher.service"

// installed installs the .deb in a directory, with a dpkg database of its own.
func installed(t *testing.T) (dir string, dpkg func(arguments ...string) (string, error)) {
	t.Helper()
	needs(t, "dpkg")
	dir = t.TempDir()
	for _, name := range []string{"info", "updates", "triggers", "parts"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "var/lib/dpkg", name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "var/lib/dpkg/status"), nil, 0o644))
	dpkg = func(arguments ...string) (string, error) {
		return in(dir, nil, "dpkg", append([]string{"--root=" + dir, "--force-script-chrootless", "--force-not-root"}, arguments...)...)
	}
	out, err := dpkg("--install", artifact(t, ".deb"))
	require.NoError(t, err)
	require.Contains(t, out, "Setting up ordered-dispatcher")
	return dir, dpkg
}

func TestDeb_InstallsAProgramThatKnowsItsVersion(t *testing.T) {
	t.Parallel()
	dir, dpkg := installed(t)
	out, err := in(dir, nil, filepath.Join(dir, "usr/bin/ordered-dispatcher"), "--version")
	require.NoError(t, err)
	require.Equal(t, "v"+version(t)+"\n", out)
	status, err := dpkg("--status", "ordered-dispatcher")
	require.NoError(t, err)
	require.Contains(t, status, "Status: install ok installed")
}

func TestDeb_InstallsAFileThatTheProgramAccepts(t *testing.T) {
	t.Parallel()
	dir, _ := installed(t)
	file := filepath.Join(dir, "etc/ordered-dispatcher/dispatcher.yaml")
	// As docs/install.md has it, so the shell must understand the file of variables, too.
	check := `set -a; . "$0/etc/ordered-dispatcher/environment"; "$0/usr/bin/ordered-dispatcher" check -c "$1" && echo "$OPTIONS"`
	out, err := in(dir, nil, "sh", "-c", check, dir, file)
	require.NoError(t, err)
	require.Contains(t, out, "--listen :9090\n")
	info, err := os.Stat(filepath.Join(dir, "etc/ordered-dispatcher/environment"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the password")
}

// The installed program, with the table and the file of docker-compose.yaml, on a real server.
func TestDeb_InstallsAProgramThatDelivers(t *testing.T) {
	t.Parallel()
	needs(t, "psql")
	server := os.Getenv("DATABASE_URL")
	if server == "" {
		require.Empty(t, os.Getenv("CI"), "run make packaging, which starts a server")
		t.Skip("there is no DATABASE_URL")
	}
	name := "deploy_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	psql := func(url string, arguments ...string) {
		_, err := in(root, nil, "psql", append([]string{"--no-psqlrc", "--set=ON_ERROR_STOP=1", url}, arguments...)...)
		require.NoError(t, err)
	}
	psql(server, "-c", "CREATE DATABASE "+name)
	t.Cleanup(func() { psql(server, "-c", "DROP DATABASE "+name+" WITH (FORCE)") })
	database, err := url.Parse(server)
	require.NoError(t, err)
	database.Path = "/" + name
	psql(database.String(), "-f", "deploy/compose/orders.sql")

	dir, _ := installed(t)
	run := func(arguments ...string) string {
		out, err := in(root, []string{"DATABASE_URL=" + database.String()}, filepath.Join(dir, "usr/bin/ordered-dispatcher"), arguments...)
		require.NoError(t, err)
		return out
	}
	run("migrate", "up")
	out := run("run", "-c", "deploy/compose/dispatcher.yaml", "--drain")
	require.Regexp(t, `(?s)"Ada".*"Grace"`, out)
}

// Each shell finds the script where the package puts it, and the script finds the program.
func TestDeb_CompletesInEachShell(t *testing.T) {
	t.Parallel()
	dir, _ := installed(t)
	for shell, script := range map[string]string{
		"bash": "usr/share/bash-completion/completions/ordered-dispatcher",
		"zsh":  "usr/share/zsh/vendor-completions/_ordered-dispatcher",
		"fish": "usr/share/fish/vendor_completions.d/ordered-dispatcher.fish",
	} {
		needs(t, shell)
		ask, err := filepath.Abs(filepath.Join(root, "command/testdata/completion/ask."+shell))
		require.NoError(t, err)
		found := filepath.Join(t.TempDir(), "found")
		env := []string{"SCRIPT=" + filepath.Join(dir, script), "FOUND=" + found, "HOME=" + t.TempDir(), "PATH=" + filepath.Join(dir, "usr/bin") + ":" + os.Getenv("PATH")}
		out, err := in(dir, env, shell, ask)
		require.NoError(t, err)
		text, err := os.ReadFile(found)
		require.NoError(t, err, out)
		require.Subset(t, strings.Fields(string(text)), []string{"list", "show", "replay", "discard"}, shell)
	}
}

// remove keeps what an operator wrote; purge does not.
func TestDeb_IsRemovedAgain(t *testing.T) {
	t.Parallel()
	dir, dpkg := installed(t)
	file := filepath.Join(dir, "etc/ordered-dispatcher/dispatcher.yaml")
	require.NoError(t, os.WriteFile(file, []byte("# mine\n"), 0o644))
	_, err := dpkg("--install", artifact(t, ".deb"))
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "# mine\n", string(text), "another version must not overwrite the file")

	_, err = dpkg("--remove", "ordered-dispatcher")
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, "usr/bin/ordered-dispatcher"))
	require.NoFileExists(t, filepath.Join(dir, unit))
	require.FileExists(t, file)
	_, err = dpkg("--purge", "ordered-dispatcher")
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "etc/ordered-dispatcher"))
}

func TestRPM_HoldsTheSameFilesAsTheDeb(t *testing.T) {
	t.Parallel()
	needs(t, "rpm", "dpkg-deb")
	rpm := func(arguments ...string) string {
		out, err := in(".", nil, "rpm", append(arguments, artifact(t, ".rpm"))...)
		require.NoError(t, err)
		return out
	}
	listed, err := in(".", nil, "dpkg-deb", "--contents", artifact(t, ".deb"))
	require.NoError(t, err)
	var deb []string
	for line := range strings.Lines(listed) {
		if fields := strings.Fields(line); !strings.HasSuffix(fields[5], "/") {
			deb = append(deb, strings.TrimPrefix(fields[5], "."))
		}
	}
	// Debian's zsh has a directory for packages, others have one for all.
	files := strings.ReplaceAll(rpm("-qlp"), "/zsh/site-functions/", "/zsh/vendor-completions/")
	require.ElementsMatch(t, deb, strings.Fields(files))
	require.Contains(t, rpm("-qp", "--dump"), "/etc/ordered-dispatcher/environment")
	require.ElementsMatch(t, []string{"/etc/ordered-dispatcher/dispatcher.yaml", "/etc/ordered-dispatcher/environment"}, strings.Fields(rpm("-qcp")))
	scripts := rpm("-qp", "--scripts")
	require.Contains(t, scripts, "systemctl daemon-reload")
	require.Contains(t, scripts, "systemctl disable --now ordered-dispatcher.service")
	require.Equal(t, "Apache-2.0", strings.TrimSpace(rpm("-qp", "--queryformat", "%{LICENSE}")))
}

// The program runs where there is no libc, as in the image.
func TestProgram_IsStatic(t *testing.T) {
	t.Parallel()
	file, err := elf.Open(program(t))
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, -1, slices.IndexFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }))
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
}

func TestArchive_HoldsTheProgramAndWhatItNeeds(t *testing.T) {
	t.Parallel()
	archive := artifact(t, "_linux_"+runtime.GOARCH+".tar.gz")
	out, err := in(".", nil, "tar", "-tzf", archive)
	require.NoError(t, err)
	dir := strings.TrimSuffix(filepath.Base(archive), ".tar.gz") + "/"
	for _, name := range []string{"ordered-dispatcher", "LICENSE", "CHANGELOG.md", "dispatcher.schema.json", "systemd/ordered-dispatcher.service", "completions/_ordered-dispatcher"} {
		require.Contains(t, strings.Fields(out), dir+name)
	}
}

func TestChecksums_AreThoseOfEveryFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(artifact(t, "checksums.txt"))
	require.NoError(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		sums[fields[1]] = fields[0]
	}
	for _, ending := range []string{".deb", ".rpm", ".tar.gz", ".cdx.json"} {
		name := filepath.Base(artifact(t, ending))
		content, err := os.ReadFile(filepath.Join(dist(t), name))
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.Equal(t, hex.EncodeToString(sum[:]), sums[name], name)
	}
}

func TestSBOM_NamesWhatTheProgramLinks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(artifact(t, ".cdx.json"))
	require.NoError(t, err)
	var sbom struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal(text, &sbom))
	require.Equal(t, "CycloneDX", sbom.BOMFormat)
	require.Equal(t, "v"+version(t), sbom.Metadata.Component.Version)
	names := map[string]string{}
	for _, component := range sbom.Components {
		names[component.Name] = component.Version
	}
	require.NotEmpty(t, names["github.com/jackc/pgx/v5"])
	require.NotEmpty(t, names["github.com/twmb/franz-go"])
	require.NotContains(t, names, "github.com/stretchr/testify", "a test's module is not linked")
}

func TestFormula_HasTheChecksumsOfTheArchives(t *testing.T) {
	t.Parallel()
	formula, err := os.ReadFile(artifact(t, ".rb"))
	require.NoError(t, err)
	content, err := os.ReadFile(artifact(t, ".tar.gz"))
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	require.Contains(t, string(formula), `version "`+version(t)+`"`)
	require.Contains(t, string(formula), "_linux_"+runtime.GOARCH+".tar.gz\"\n      sha256 \""+hex.EncodeToString(sum[:])+`"`)
	require.NotContains(t, string(formula), "VERSION")
}

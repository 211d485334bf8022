package buckets

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/gcsblob"
	_ "gocloud.dev/blob/s3blob"
)

const (
	// patience bounds every wait: a test that needs it fails.
	patience = 2 * time.Minute
	tick     = 20 * time.Millisecond

	login  = "AKIDOFTHETEST"
	secret = "of-the-test-CANARY-wJalrXUtnFEMI"
)

var testDir string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// google is the server of Google's protocol for all tests. Clients find it by a variable of the environment alone.
var google *fakestorage.Server

// runTests sets the login of the store, for this process and for the programs that it starts.
func runTests(m *testing.M) int {
	var err error
	if testDir, err = os.MkdirTemp("", "buckets-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(testDir)
	if google, err = fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "storage.googleapis.com" // the only one at which it lets objects be read
		google.HTTPHandler().ServeHTTP(w, r)
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"STORAGE_EMULATOR_HOST": server.Listener.Addr().String(),
		"AWS_ACCESS_KEY_ID":     login, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": filepath.Join(testDir, "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(testDir, "none"),
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// store is a bucket of a server that speaks the protocol of S3 or Google's.
type store struct {
	t      *testing.T
	google string           // its bucket; "": it is one of S3
	server *httptest.Server // of S3
	fault  atomic.Pointer[fault]
}

// eachProtocol runs a test with a store of each protocol.
func eachProtocol(t *testing.T, test func(t *testing.T, s *store)) {
	t.Run("s3", func(t *testing.T) {
		t.Parallel()
		test(t, newStore(t))
	})
	t.Run("gs", func(t *testing.T) {
		t.Parallel()
		s := &store{t: t, google: strings.ToLower(rand.Text())}
		google.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: s.google})
		test(t, s)
	})
}

// fault answers a request in place of the store, or returns false.
type fault func(http.ResponseWriter, *http.Request) bool

const bucketName = "kept"

func newStore(t *testing.T) *store {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket(bucketName))
	s := &store{t: t}
	s3 := gofakes3.New(backend).Server()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+login+"/") {
			refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
			return
		}
		if f := s.fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	// The driver of gocloud.dev reads a 301 in the text of an error as a redirect: see decision 69.
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>m</Message><RequestId>8FA301C</RequestId></Error>", code)
}

func refusing(status int, code string) fault {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, status, code)
		return true
	}
}

// hanging keeps its callers waiting until they give up.
func hanging(_ http.ResponseWriter, r *http.Request) bool {
	_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the caller is gone
	<-r.Context().Done()
	return true
}

// breaking begins to answer with an object and breaks off.
func breaking(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Query().Has("list-type") {
		return false
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(payload(1))))
	_, _ = w.Write([]byte("part"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// writesRefused lets the caller read and list.
func writesRefused(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	refuse(w, http.StatusForbidden, "AccessDenied")
	return true
}

// behave sets how the store answers from now on; nil: well.
func (s *store) behave(f fault) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

// url is what a configuration has. It ends within the parameters.
func (s *store) url() string {
	if s.google != "" {
		return "gs://" + s.google + "?anonymous=true"
	}
	return s.of(bucketName)
}

func (s *store) of(bucket string) string {
	return fmt.Sprintf("s3://%s?region=eu-central-1&use_path_style=true&endpoint=%s", bucket, url.QueryEscape(s.server.URL))
}

// open opens the bucket as a Go program does.
func (s *store) open() *blob.Bucket {
	s.t.Helper()
	bucket, err := blob.OpenBucket(s.t.Context(), s.url())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, bucket.Close()) })
	return bucket
}

// names lists the bucket.
func (s *store) names() (all []string) {
	s.t.Helper()
	for objects := s.open().List(nil); ; {
		o, err := objects.Next(s.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(s.t, err)
		all = append(all, o.Key)
	}
}

// lines reads all files of an archive.
func (s *store) lines() (all []string) {
	s.t.Helper()
	bucket := s.open()
	for _, name := range s.names() {
		content, err := bucket.ReadAll(s.t.Context(), name)
		require.NoError(s.t, err)
		z, err := gzip.NewReader(bytes.NewReader(content))
		require.NoError(s.t, err)
		text, err := io.ReadAll(z)
		require.NoError(s.t, err)
		all = append(all, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return all
}

// program is the daemon, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(testDir, "ordered-dispatcher")
	out, err := exec.Command("go", "build", "-o", path, "github.com/ordered-dispatcher/ordered-dispatcher/cmd/ordered-dispatcher").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return path, nil
})

// do runs a command of the program to its end. Nothing that it prints has a secret.
func do(t *testing.T, address string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+address, "COLUMNS=9999") // lines are not folded
	cmd.Stdout, cmd.Stderr = &out, &log
	err = cmd.Run()
	require.NoError(t, ctx.Err(), "%v did not end: %s", args, log.String())
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.NotContains(t, out.String()+log.String(), "CANARY")
	return cmd.ProcessState.ExitCode(), out.String(), log.String()
}

// must runs a command that succeeds.
func must(t *testing.T, address string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := do(t, address, args...)
	require.Zero(t, code, "%v: %s%s", args, stdout, stderr)
	return stdout
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dispatcher.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

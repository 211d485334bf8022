package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
)

// processWith is a configuration of one process with a sink.
func processWith(sink string) string {
	return "processes:\n  a:\n    source: {table: t}\n    sink: " + sink + "\n"
}

// What a configuration names is read by check and at a start: neither takes all memory,
// nor waits for a pipe that is never written to.
func TestParse_FilesOfSinksHaveAnEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<40))
	for _, c := range []struct{ sink, want string }{
		{"{webhook: {url: 'https://x/', tls: {ca: /dev/zero}}}", "tls.ca: /dev/zero: it is neither a file nor a pipe: name the right file"},
		{"{webhook: {url: 'https://x/', tls: {ca: " + large + "}}}", "tls.ca: " + large + ": it is too large"},
		{"{webhook: {url: 'https://x/', tls: {cert: " + pipe + ", key: " + pipe + "}}}", "tls.cert: " + pipe + ": it is not a regular file"},
		{"{rabbitmq: {url: 'amqps://x/', exchange: e, tls: {cert: " + large + ", key: " + large + "}}}", "tls.cert: " + large + ": it is too large"},
		{"{sql: {url: 'postgres://a@h/x?sslmode=verify-full&sslrootcert=/dev/zero', statement: SELECT 1}}", "the file that sslrootcert of the connection string names"},
		{"{sql: {url: 'host=h user=a sslmode=verify-full sslcert=" + pipe + " sslkey=" + pipe + "', statement: SELECT 1}}", "the connection string names cannot be read (it is not a regular file)"},
	} {
		ended := make(chan error, 1)
		go func() {
			_, err := parse(processWith(c.sink))
			ended <- err
		}()
		select {
		case err := <-ended:
			require.ErrorContains(t, err, c.want)
		case <-time.After(20 * time.Second):
			require.Fail(t, "waits", c.sink)
		}
	}
	_, err := parse("database: 'postgres://a@h/x?sslrootcert=/dev/zero'\n" + processWith("{stdout: {}}"))
	require.ErrorContains(t, err, "the file that sslrootcert of the connection string names")
}

// secured is a process with a sink that has the given TLS settings.
func secured(tls string) string {
	return "processes:\n  a:\n    source: {table: t}\n    sink:\n      rabbitmq:\n        url: amqps://h/\n" +
		"        exchange: e\n        tls: " + tls + "\n"
}

func TestParse_FaultsOfTLSNameTheFile(t *testing.T) {
	t.Parallel()
	ca, cert, key := brokertest.NewCertificates(t).Write(t)
	missing := filepath.Join(t.TempDir(), "missing.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct{ tls, want string }{
		{fmt.Sprintf("{ca: %s}", missing), "8:15: processes.a.sink.rabbitmq.tls.ca: stat " + missing},
		{fmt.Sprintf("{ca: %s}", empty), "8:15: processes.a.sink.rabbitmq.tls.ca: " + empty + " holds no certificate in PEM"},
		{fmt.Sprintf("{cert: %s}", cert), "8:9: processes.a.sink.rabbitmq.tls: a client certificate is two files: give both cert and key"},
		{fmt.Sprintf("{cert: %s, key: %s}", cert, missing), "8:15: processes.a.sink.rabbitmq.tls.cert: open " + missing},
		{fmt.Sprintf("{cert: %s, key: %s}", cert, ca), "8:15: processes.a.sink.rabbitmq.tls.cert: tls: "},
	} {
		_, err := parse(secured(c.tls))
		require.ErrorContains(t, err, "dispatcher.yaml:"+c.want)
		require.NotContains(t, err.Error(), "PRIVATE KEY")
	}
	_, err := parse(secured(fmt.Sprintf("{ca: %s, cert: %s, key: %s}", ca, cert, key)))
	require.NoError(t, err)
}

func TestParse_ARenewedCertificateIsShownAtTheNextHandshake(t *testing.T) {
	t.Parallel()
	ca, cert, key := brokertest.NewCertificates(t).Write(t)
	config, err := parse(secured(fmt.Sprintf("{ca: %s, cert: %s, key: %s}", ca, cert, key)))
	require.NoError(t, err)
	show := config.Processes[0].Sink.Config.(*rabbitmq.Config).TLS.GetClientCertificate
	first, err := show(nil)
	require.NoError(t, err)
	_, newCert, newKey := brokertest.NewCertificates(t).Write(t)
	require.NoError(t, os.Rename(newCert, cert))
	require.NoError(t, os.Rename(newKey, key))
	second, err := show(nil)
	require.NoError(t, err)
	require.NotEqual(t, first.Certificate, second.Certificate)
}

// A typing error beside a secret: the line is shown, and the parser counts its lines and
// characters otherwise than an editor does.
func TestParse_AFaultShowsNoPartOfASecretHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const (
		head = "# ours\ndatabase: postgres://u:CANARYpassword@h/db\nprocesses:\n  p:\n    source: {table: public.t}\n    start: beginning\n"
		line = head + "    sink: {webhook: {url: 'https://h/x', bearer: %, bogus: 1}}\n"
		tree = head + "    sink:\n      webhook:\n        url: https://h/x\n        bogus: 5s\n        secret: whsec_CANARYCANARYCANARY\n    limit: 1/s\n"
	)
	of := func(value string) string { return strings.Replace(line, "%", value, 1) }
	for name, text := range map[string]string{
		"on the next line":            tree,
		"a quote over two lines":      of("\"first\n      CANARYsecond\""),
		"single quotes over lines":    of("'first\n      CANARYsecond'"),
		"plain over two lines":        of("first\n      CANARYsecond"),
		"a quote with a blank line":   of("\"first\n\n      CANARYsecond\""),
		"escaped":                     of(`"\u0041\u0042\x43\U00000044CANARYCANARY"`),
		"with quotes in it":           of(`"a\"CANARY\"CANARY"`),
		"single quotes in it":         of(`'a''CANARY''CANARY'`),
		"of two bytes and of four":    of("\"é😀é😀 CANARYCANARY\""),
		"a comment behind":            of("CANARYCANARY # CANARYold\n      "),
		"a block":                     head + "    sink:\n      exec:\n        command: [a]\n        env:\n          A: |\n            first\n            CANARYx\n        bogus: 1\n",
		"an anchor and what it holds": of("&a \"CANARYCANARY\", bearer: *a"),
	} {
		for ends, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			t.Run(name+", "+ends, func(t *testing.T) {
				t.Parallel()
				_, err := daemon.Parse("f.yaml", []byte(strings.ReplaceAll(text, "\n", end)), environment(nil), kinds)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "CANARY")
				require.NotContains(t, err.Error(), "ARY\"")
			})
		}
	}
}

// Whatever a file says: reading it neither panics nor shows what a reference
// stands for; each fault has its place; and what is accepted can be built.
func FuzzParse(f *testing.F) {
	f.Add(contract, "whsec_")
	f.Add("processes: {a: {source: {table: '${T}.b.c'}, sink: {stdout: {}}}}", "")
	f.Add("schema: ${X}\nprocesses: {a: {source: {table: t, columns: {id: '${Y}', key: k}}, sink: {stdout: {}}}}", "two words")
	f.Add("processes: {a: {source: {table: t, order: '${O}', latency: '${L}'}, sink: {sql: {statement: 'SELECT @id, ${S}'}}}}", "SELECT @")
	f.Add("processes: {a: {source: {table: t}, sink: {webhook: {url: '${U}', headers: {X-Key: '${K}'}, timeout: '${T}', format: '${F}'}}}}", "http://u:p@h/")
	f.Add("database: '${D}'\nprocesses: {a: {source: {table: t}, sink: {stdout: }, batch: '${B}', poll: ${P}, retry: {jitter: ${J}}, on_poison: ${O}}}", "host=h port=")
	f.Add("database: 'postgres://${U}@h/d?sslmode=${M}&pool_max_conns=${N}'\nprocesses: {'${A}': {}, b: &x {source: *x, <<: *x}}", "&x=")
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.Contains(text, "file:") {
			t.Skip("would read files of this machine")
		}
		const canary = "CANARY"
		if strings.Contains(text, canary) {
			t.Skip("not by a reference")
		}
		env := func(name string) (string, bool) { return value + canary, !strings.HasPrefix(name, "NOPE") }
		config, err := daemon.Parse("f.yaml", []byte(text), env, kinds)
		if err != nil {
			require.NotContains(t, err.Error(), canary)
			require.Regexp(t, `^f\.yaml:[1-9]\d*:[1-9]\d*: `, err.Error())
			return
		}
		require.NotEmpty(t, config.Processes)
		for _, p := range config.Processes {
			require.NoError(t, daemon.Build(p))
		}
	})
}

// TestParse_RefusesTwoProcessesOnWhatBelongsToOne: each would put the other out, by turns.
func TestParse_RefusesTwoProcessesOnWhatBelongsToOne(t *testing.T) {
	t.Parallel()
	two := func(a, b string) error {
		_, err := parse("processes:\n  a: {source: {table: t}, sink: {" + a + "}}\n  b: {source: {table: t}, sink: {" + b + "}}\n")
		return err
	}
	kafka := func(id string) string { return `kafka: {brokers: ["h:9092"], topic: o, transactional_id: ` + id + `}` }
	nats := func(stream, fence string) string {
		return `nats: {url: "nats://h:4222", stream: ` + stream + `, subject: "orders.x", fence: "` + fence + `"}`
	}
	require.ErrorContains(t, two(kafka("pay"), kafka("pay")), `3:3: processes.b: its sink has the transactional_id pay at h:9092, and the sink of process "a" has it, too: give each process a transactional_id of its own`)
	require.ErrorContains(t, two(nats("ORDERS", "fence.x"), nats("ORDERS", "fence.x")), `its sink has the fence fence.x of stream "ORDERS"`)
	require.ErrorContains(t, two(nats("ORDERS", "fence.{{if .Process}}x{{end}}"), nats("ORDERS", "fence.{{if .Process}}x{{end}}")), `its sink has the fence fence.x of stream`, "templates that print the same")
	require.ErrorContains(t, two(nats("ORDERS", "fence.{{.Type}}"), nats("ORDERS", "fence.{{.Type}}")), `its sink has the fence`, "the process alone counts")
	require.NoError(t, two(kafka("pay"), kafka("ship")))
	require.NoError(t, two(nats("ORDERS", "fence.x"), nats("OTHERS", "fence.x")))
	require.NoError(t, two(nats("ORDERS", "fence.{{.Process}}"), nats("ORDERS", "fence.{{.Process}}")))
	require.NoError(t, two(`kafka: {brokers: ["h:9092"], topic: o}`, `kafka: {brokers: ["h:9092"], topic: o}`))
}

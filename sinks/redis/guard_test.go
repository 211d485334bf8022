package redis_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/brokertest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/redis"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

func TestGuard_AServerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"WRONGPASS", "ERR", "NEWCODE", "NOAUTH"} {
		for where, command := range map[string]string{"at the login": "auth", "after it": "client", "to a record": "eval"} {
			t.Run(code+" "+where, func(t *testing.T) {
				t.Parallel()
				if code == "ERR" && command == "client" {
					t.Skip("a user may lack that right")
				}
				for _, hide := range []bool{false, true} {
					s := talking(t, func(said []string) string {
						if strings.EqualFold(said[0], command) {
							return "-" + code + " " + secrettest.Words + secrettest.Forms(secrettest.Canary) + "\r\n"
						}
						return asRedis("*2\r\n+appended\r\n+1-1\r\n")(said)
					}, func(c *redis.Config) {
						c.URL = strings.Replace(c.URL, "://", "://u:"+url.QueryEscape(secrettest.Canary)+"@", 1)
						c.HideAnswers = hide
					})
					_, err := sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
					secrettest.RequireMasked(t, err, hide)
				}
			})
		}
	}
}

func TestGuard_HiddenAnswersHaveNothingOfRedis(t *testing.T) {
	t.Parallel()
	const marker = sinktest.Marker
	for _, answer := range []string{
		"-" + marker + "\r\n", "-WORDS " + marker + "\r\n", "-OOM " + marker + "\r\n", "*2\r\n+" + marker + "\r\n+" + marker + "\r\n", "*2\r\n+superseded\r\n+" + marker + "\r\n",
		"*2\r\n+lost\r\n+" + marker + "\r\n", "+" + marker + "\r\n", marker + "\r\n", "$" + marker + "\r\n", "*2\r\n$" + marker + "\r\n", "*2\r\n*1\r\n+" + marker + "\r\n+x\r\n", "_" + marker + "\r\n",
	} {
		sinktest.Hides(t, talking(t, asRedis(answer), func(c *redis.Config) { c.HideAnswers = true }), "append to stream")
	}
}

func TestGuard_NoWordOfARecordIsQuoted(t *testing.T) {
	t.Parallel()
	_, err := sinktest.Deliver(t, talking(t, asRedis("-ERR unknown command "+sinktest.Repeated+"\r\n"), nil), sinktest.Private())
	sinktest.RequirePrivate(t, err, "ERR unknown command", "; if it is about a right")
}

// What promises to be large, or has no end, is not heard out.
func TestGuard_AServerThatSaysTooMuchIsNotHeardOut(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a large text":      "$500000000\r\n",
		"a larger text":     "$9999999999999999999999\r\n",
		"a long list":       "*100000000\r\n",
		"lists in lists":    strings.Repeat("*100\r\n", 1000),
		"lists after texts": strings.Repeat("*4096\r\n+\r\n", 8000),
		"a map":             "%1\r\n+a\r\n+a\r\n",
		"an attribute":      "|0\r\n+a\r\n",
		"no end of a line":  "-" + strings.Repeat("x", 1<<20),
		"many texts":        "*4000\r\n" + strings.Repeat("$2000\r\n"+strings.Repeat("x", 2000)+"\r\n", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, to := range []func([]string) string{asRedis(answer), func([]string) string { return answer }} { // a record, and the login
				_, err := sinktest.Deliver(t, talking(t, to, nil), sinktest.Deliveries(1, 1))
				require.ErrorContains(t, err, "the server there sends more than Redis does")
			}
		})
	}
}

// The answers of the largest window have two elements each.
func TestGuard_AllAnswersOfAWindowAreHeard(t *testing.T) {
	t.Parallel()
	const records = 3000
	taken := 0
	s := talking(t, func(command []string) string {
		if !strings.HasPrefix(strings.ToLower(command[0]), "eval") {
			return asRedis("")(command)
		}
		if taken++; taken < records {
			return ""
		}
		return strings.Repeat("*2\r\n$8\r\nappended\r\n$3\r\n1-1\r\n", records)
	}, window(10_000))
	sinktest.Delivered(t, s, sinktest.Deliveries(1, records))
}

// recorder keeps what go-redis logs.
type recorder struct{ lines atomic.Int64 }

func (r *recorder) Printf(context.Context, string, ...any) { r.lines.Add(1) }

// It is not parallel: go-redis has one logger for the program.
func TestSpec_TheClientOfADaemonPrintsNothingPastItsLog(t *testing.T) {
	logger := new(recorder)
	client.SetLogger(logger)
	unasked := func() {
		s := talking(t, asRedis("*2\r\n+appended\r\n+1-1\r\n+JUNK\r\n"), nil)
		sinktest.Delivered(t, s, sinktest.Deliveries(1, 1))
		require.NoError(t, s.Close())
	}
	unasked()
	require.EqualValues(t, 1, logger.lines.Load(), "the client logs what comes unasked")
	redis.Spec()
	unasked()
	require.EqualValues(t, 1, logger.lines.Load())
}

func TestConnect_ASilentServerEndsWithTimeout(t *testing.T) {
	t.Parallel()
	address := tcptest.Serve(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)); <-t.Context().Done() })
	s, err := redis.New(redis.Config{URL: "redis://" + address, Stream: stream, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	began := time.Now()
	_, err = sinktest.Deliver(t, s, sinktest.Deliveries(1, 1))
	require.ErrorContains(t, err, "nothing was sent: ")
	require.ErrorContains(t, err, "100ms")
	require.Equal(t, "unreached", sinktest.Class(err), err)
	require.Less(t, time.Since(began), time.Minute)
}

func TestDeliverBatch_OverMutualTLS(t *testing.T) {
	t.Parallel()
	certificates := brokertest.NewCertificates(t)
	dir, err := throwaway.New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dir.Close(context.Background())) })
	for name, content := range map[string][]byte{"ca.pem": certificates.CA, "cert.pem": certificates.ServerCert, "key.pem": certificates.ServerKey} {
		require.NoError(t, dir.WriteFile(name, content))
	}
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	b := newBench(t, "--tls-port", strconv.Itoa(port), "--tls-ca-cert-file", dir.Path("ca.pem"), "--tls-cert-file", dir.Path("cert.pem"), "--tls-key-file", dir.Path("key.pem"))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates.CA))
	pair, err := tls.X509KeyPair(certificates.ClientCert, certificates.ClientKey)
	require.NoError(t, err)
	over := func(c *tls.Config) error {
		_, err := sinktest.Deliver(t, b.sink(t, func(config *redis.Config) {
			config.URL, config.TLS = fmt.Sprintf("rediss://:%s@localhost:%d", password, port), c
		}), sinktest.Deliveries(1, 1))
		return err
	}
	require.NoError(t, over(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}))
	err = over(nil)
	require.ErrorContains(t, err, "give the authority of the server's certificate as tls.ca")
	require.True(t, processor.IsUnreached(err), err)
	require.Error(t, over(&tls.Config{RootCAs: roots}), "the server wants a certificate")
}

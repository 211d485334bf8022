package broker

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// Kafka is a running broker that is its own controller: a cluster of one.
type Kafka struct {
	server
	sasl, tls, controller int // the ports of the further listeners
	java, jars            string
}

// KafkaConfig describes how to start a broker. Zero values mean defaults.
type KafkaConfig struct {
	// Port is the port to listen on, without TLS or users. 0: a free one.
	Port int
	// Settings are more lines for server.properties.
	Settings string
	// TLS opens one more listener, for clients with a certificate. nil: none.
	TLS *KafkaTLS
}

// KafkaTLS has the authority that signs the clients' certificates, and the broker's own certificate and key, in PEM.
type KafkaTLS struct{ CA, Cert, Key []byte }

// A user of the listener with SASL. Tests can look for the password in texts.
const (
	KafkaUser     = "dispatcher"
	KafkaPassword = "secret-password"
)

const kafkaCluster = "b3JkZXJlZC1kaXNwYXRjaA" // any 16 bytes, in base64

// StartKafka starts a broker that makes no topic by itself. The first time it fetches Kafka with Maven, which takes a
// minute. ctx bounds the start. The caller calls Close.
func StartKafka(ctx context.Context, c KafkaConfig) (*Kafka, error) {
	java, err := find("java", "openjdk-17-jre-headless")
	if err != nil {
		return nil, err
	}
	jars, err := kafkaJars(ctx)
	if err != nil {
		return nil, err
	}
	k := &Kafka{server: server{name: "Kafka", port: c.Port}, java: java, jars: jars}
	if err := k.open(ctx, func() error { return k.begin(ctx, c) }); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Kafka) begin(ctx context.Context, c KafkaConfig) (err error) {
	for _, port := range []*int{&k.sasl, &k.tls, &k.controller} {
		if *port, err = throwaway.FreePort(); err != nil {
			return err
		}
	}
	if err := k.dir.WriteFile("server.properties", []byte(k.properties(c))); err != nil {
		return err
	}
	if err := k.format(ctx); err != nil {
		return err
	}
	k.command = append([]string{k.java}, append(k.machine(), "kafka.Kafka", k.dir.Path("server.properties"))...)
	return k.Start(ctx)
}

// format makes the directory of the logs, with the user.
func (k *Kafka) format(ctx context.Context) error {
	args := append(k.machine(), "kafka.tools.StorageTool", "format", "-t", kafkaCluster, "-c", k.dir.Path("server.properties"))
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, KafkaUser, KafkaPassword))
	}
	_, err := k.dir.Run(ctx, k.java, args...)
	return err
}

// machine returns the options of a small Java machine that starts fast.
func (k *Kafka) machine() []string {
	return []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", k.jars + "/*"}
}

func (k *Kafka) properties(c KafkaConfig) string {
	listeners := fmt.Sprintf("PLAIN://127.0.0.1:%d,SASL://127.0.0.1:%d", k.port, k.sasl)
	var more strings.Builder
	if c.TLS != nil {
		listeners += fmt.Sprintf(",TLS://127.0.0.1:%d", k.tls)
		more.WriteString(c.TLS.properties())
	}
	more.WriteString(c.Settings)
	return fmt.Sprintf(`
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[1]d
listeners=%[2]s,CONTROLLER://127.0.0.1:%[1]d
advertised.listeners=%[2]s
listener.security.protocol.map=PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
log.dirs=%[3]s
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
num.network.threads=1
num.io.threads=2
background.threads=1
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=2000000
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%[4]s="%[5]s";
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
%[6]s
`, k.controller, listeners, k.dir.Path("logs"), KafkaUser, KafkaPassword, more.String())
}

func (t *KafkaTLS) properties() string {
	line := func(pem []byte) string { return strings.ReplaceAll(strings.TrimSpace(string(pem)), "\n", `\n`) }
	return fmt.Sprintf(`
listener.name.tls.ssl.client.auth=required
listener.name.tls.ssl.keystore.type=PEM
listener.name.tls.ssl.keystore.certificate.chain=%s
listener.name.tls.ssl.keystore.key=%s
listener.name.tls.ssl.truststore.type=PEM
listener.name.tls.ssl.truststore.certificates=%s
`, line(t.Cert), line(t.Key), line(t.CA))
}

// AddrSASL returns the host and port for KafkaUser, who logs in with PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
func (k *Kafka) AddrSASL() string { return loopback(k.sasl) }

// AddrTLS returns the host and port for clients with a certificate, if KafkaConfig.TLS was set.
func (k *Kafka) AddrTLS() string { return loopback(k.tls) }

// Signal sends sig, such as SIGSTOP or SIGCONT, to the broker.
func (k *Kafka) Signal(sig syscall.Signal) error { return k.process.Signal(sig) }

// Data returns the directory in which the broker keeps its topics.
func (k *Kafka) Data() string { return k.dir.Path("logs") }

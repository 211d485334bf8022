package broker

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

// kafkaPOM lists Kafka's jars for Maven.
//
//go:embed kafka/pom.xml
var kafkaPOM []byte

// kafkaJars returns the directory of Kafka's jars in the cache. Maven fills it once for each content of the POM.
func kafkaJars(ctx context.Context) (string, error) {
	digest := sha256.Sum256(kafkaPOM)
	return pglocal.Cached(ctx, "kafka-"+hex.EncodeToString(digest[:6]), func(ctx context.Context, dir string) error {
		mvn, err := find("mvn", "maven")
		if err != nil {
			return err
		}
		pom := filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(pom, kafkaPOM, 0o644); err != nil {
			return err
		}
		command := exec.CommandContext(ctx, mvn, "--quiet", "--batch-mode", "--file", pom, "dependency:copy-dependencies", "-DoutputDirectory="+dir)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("fetch Kafka's jars with Maven: %w: %s", err, out)
		}
		return nil
	})
}

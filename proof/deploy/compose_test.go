package deploy

import (
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

func compose(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yaml")}, cli.WithProfiles(profiles), cli.WithResolvedPaths(true))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func TestCompose_StartsADatabaseAndAWorkerAndBrokersOnlyIfAsked(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{"postgres", "migrate", "dispatcher"}, compose(t).ServiceNames())
	require.Subset(t, compose(t, "brokers").ServiceNames(), []string{"dispatcher", "kafka", "rabbitmq", "redis", "nats", "pubsub"})
}

func TestCompose_RunsTheWorkerWithoutRightsAfterTheMigration(t *testing.T) {
	t.Parallel()
	services := compose(t).Services
	worker := services["dispatcher"]
	require.True(t, worker.ReadOnly)
	require.Equal(t, []string{"ALL"}, worker.CapDrop)
	require.Contains(t, worker.SecurityOpt, "no-new-privileges:true")
	require.Equal(t, types.ServiceConditionCompletedSuccessfully, worker.DependsOn["migrate"].Condition)
	require.Equal(t, types.ServiceConditionHealthy, services["migrate"].DependsOn["postgres"].Condition)
	require.Equal(t, services["migrate"].Image, worker.Image)
	for _, service := range services {
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				require.FileExists(t, volume.Source)
				require.True(t, volume.ReadOnly)
			}
		}
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s is for this machine only", service.Name)
		}
	}
}

// The image's command finds the file where compose puts it.
func TestCompose_MountsTheFileThatTheImageReads(t *testing.T) {
	t.Parallel()
	require.Contains(t, read(t, "Dockerfile"), `"/etc/ordered-dispatcher/dispatcher.yaml"`)
	require.Equal(t, "/etc/ordered-dispatcher/dispatcher.yaml", compose(t).Services["dispatcher"].Volumes[0].Target)
}

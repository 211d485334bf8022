package main

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

func TestCompose_HasTheSameServicesOnTheSamePorts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docker-compose.yaml")
	require.NoError(t, err)
	var file struct {
		Services map[string]struct{ Ports, Profiles []string }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	maps.DeleteFunc(file.Services, func(_ string, s struct{ Ports, Profiles []string }) bool { return len(s.Profiles) == 0 })
	require.Len(t, file.Services, len(services))
	for _, s := range services {
		ports := file.Services[s.name].Ports
		require.NotEmpty(t, ports, s.name)
		require.Contains(t, ports[0], fmt.Sprintf("127.0.0.1:%d:", s.port))
	}
}

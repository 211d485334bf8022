package deploy

import (
	"encoding/base64"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yannh/kubeconform/pkg/validator"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chart = "deploy/helm/ordered-dispatcher"

// least are the values without which the chart is refused.
const least = `
database: {existingSecret: orders-database}
config:
  database: ${DATABASE_URL}
  processes:
    orders:
      source: {table: public.orders}
      sink: {webhook: {url: "https://orders.example/events", secret: "${SECRET}"}}
      start: beginning
`

// most are values that use all of it.
const most = least + `
image: {digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000", pullSecrets: [{name: registry}]}
env:
  - name: SECRET
    valueFrom: {secretKeyRef: {name: orders, key: secret}}
secretFiles: [orders-tls]
extraArgs: [--log-level=debug]
migrate: {enabled: true, existingSecret: owner, schema: dispatch}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
serviceAccount: {annotations: {team: orders}}
podLabels: {team: orders}
podAnnotations: {note: text}
nodeSelector: {disk: ssd}
tolerations: [{key: dedicated, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
priorityClassName: high
resources: {limits: {cpu: 1, memory: 1Gi}}
`

// rendered returns the manifests by their file, as helm template makes them.
func rendered(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, chart))
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	var given map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(values), &given))
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: "orders", Namespace: "shop", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, all)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, text := range files {
		if name = path.Base(name); strings.TrimSpace(text) != "" && !strings.HasPrefix(name, "_") {
			out[name] = text
		}
	}
	return out, nil
}

// conform holds a manifest against the schemas, and refuses unknown fields.
func conform(t *testing.T, name, text string) []validator.Result {
	t.Helper()
	v, err := validator.New([]string{"testdata/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true})
	require.NoError(t, err)
	return v.Validate(name, io.NopCloser(strings.NewReader(text)))
}

func TestChart_MakesManifestsThatKubernetesAccepts(t *testing.T) {
	t.Parallel()
	always := []string{"NOTES.txt", "configmap.yaml", "deployment.yaml", "poddisruptionbudget.yaml", "service.yaml", "serviceaccount.yaml"}
	for values, files := range map[string][]string{
		least: always,
		most:  slices.Sorted(slices.Values(append([]string{"migrate.yaml", "servicemonitor.yaml"}, always...))),
	} {
		manifests, err := rendered(t, values)
		require.NoError(t, err)
		require.Equal(t, files, slices.Sorted(maps.Keys(manifests)))
		delete(manifests, "NOTES.txt")
		for name, text := range manifests {
			for _, result := range conform(t, name, text) {
				require.Equal(t, validator.Valid, result.Status, "%s: %v\n%s", name, result.Err, text)
			}
		}
	}
}

func TestConform_RefusesWhatKubernetesWouldRefuse(t *testing.T) {
	t.Parallel()
	manifests, err := rendered(t, most)
	require.NoError(t, err)
	for _, c := range [][3]string{
		{"deployment.yaml", "replicas: 2", "replicas: two"},
		{"deployment.yaml", "readOnlyRootFilesystem:", "readonlyRootFilesystem:"},
		{"deployment.yaml", "selector:", "selectors:"},
		{"poddisruptionbudget.yaml", "policy/v1", "policy/v1beta1"},
		{"servicemonitor.yaml", "interval: 15s", "interval: soon"},
		{"migrate.yaml", "backoffLimit:", "backofflimit:"},
	} {
		text := strings.Replace(manifests[c[0]], c[1], c[2], 1)
		require.NotEqual(t, manifests[c[0]], text, c)
		for _, result := range conform(t, c[0], text) {
			require.NotEqual(t, validator.Valid, result.Status, c)
		}
	}
}

func TestChart_RefusesValuesThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"", "existingSecret"},
		{"database: {existingSecret: x}", "processes"},
		{least + "replica: 3", "replica"},
		{least + "migrate: {enabled: true}", "existingSecret"},
		{least + "serviceAccount: {create: false}", "name"},
		{least + "env: [{name: DATABASE_URL, value: x}]", "env"},
		{least + "image: {digest: latest}", "digest"},
		// The ConfigMap is no place for a password.
		{strings.Replace(least, "${DATABASE_URL}", "postgres://dispatcher:password@db/orders", 1), "database"},
	} {
		_, err := rendered(t, c[0])
		require.ErrorContains(t, err, c[1], c[0])
	}
}

// The values that the manual shows.
func TestChart_AcceptsTheManualsValues(t *testing.T) {
	t.Parallel()
	_, block, ok := strings.Cut(read(t, "docs/install.md"), "```yaml\n# values.yaml\n")
	require.True(t, ok)
	block, _, _ = strings.Cut(block, "```")
	manifests, err := rendered(t, block)
	require.NoError(t, err)
	for _, result := range conform(t, "deployment.yaml", manifests["deployment.yaml"]) {
		require.Equal(t, validator.Valid, result.Status, result.Err)
	}
	require.Contains(t, manifests["deployment.yaml"], "ORDERS_SECRET")
}

// pod returns the template of the pods in a manifest.
func pod(t *testing.T, text string) map[string]any {
	t.Helper()
	var manifest map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &manifest))
	return at(t, manifest, "spec", "template", "spec").(map[string]any)
}

// at follows keys, and takes the first element of a list.
func at(t *testing.T, value any, keys ...string) any {
	t.Helper()
	for _, key := range keys {
		if list, ok := value.([]any); ok {
			value = list[0]
		}
		object, ok := value.(map[string]any)
		require.True(t, ok, keys)
		value = object[key]
	}
	return value
}

func TestChart_RunsItsPodsWithoutRights(t *testing.T) {
	t.Parallel()
	manifests, err := rendered(t, most)
	require.NoError(t, err)
	for _, name := range []string{"deployment.yaml", "migrate.yaml"} {
		spec := pod(t, manifests[name])
		require.Equal(t, false, spec["automountServiceAccountToken"])
		require.Equal(t, true, at(t, spec, "securityContext", "runAsNonRoot"))
		require.Equal(t, "RuntimeDefault", at(t, spec, "securityContext", "seccompProfile", "type"))
		container := at(t, spec, "containers", "securityContext")
		require.Equal(t, true, at(t, container, "readOnlyRootFilesystem"))
		require.Equal(t, false, at(t, container, "allowPrivilegeEscalation"))
		require.Equal(t, []any{"ALL"}, at(t, container, "capabilities", "drop"))
		require.NotEmpty(t, at(t, spec, "containers", "env", "valueFrom", "secretKeyRef", "name"))
	}
}

func TestChart_ProbesAndEndsAsTheManualSays(t *testing.T) {
	t.Parallel()
	manifests, err := rendered(t, least+"graceSeconds: 45")
	require.NoError(t, err)
	spec := pod(t, manifests["deployment.yaml"])
	require.Equal(t, "/healthz", at(t, spec, "containers", "livenessProbe", "httpGet", "path"))
	require.EqualValues(t, 3, at(t, spec, "containers", "livenessProbe", "failureThreshold"))
	require.Equal(t, "/readyz", at(t, spec, "containers", "readinessProbe", "httpGet", "path"))
	require.EqualValues(t, 55, spec["terminationGracePeriodSeconds"])
	require.Contains(t, at(t, spec, "containers", "args"), "--grace=45s")
	require.Contains(t, manifests["poddisruptionbudget.yaml"], "minAvailable: 1")
	require.Contains(t, manifests["deployment.yaml"], "replicas: 2")
}

// A worker must not go on with the file of before.
func TestChart_RestartsWorkersWhenTheFileChanges(t *testing.T) {
	t.Parallel()
	sum := func(values string) any {
		manifests, err := rendered(t, values)
		require.NoError(t, err)
		var manifest map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(manifests["deployment.yaml"]), &manifest))
		return at(t, manifest, "spec", "template", "metadata", "annotations", "checksum/config")
	}
	require.Equal(t, sum(least), sum(least))
	require.NotEqual(t, sum(least), sum(strings.Replace(least, "orders.example", "sales.example", 1)))
}

// The ConfigMap's file and the arguments of the pods are those of the program.
func TestChart_GivesTheProgramWhatItUnderstands(t *testing.T) {
	t.Parallel()
	manifests, err := rendered(t, most)
	require.NoError(t, err)
	var configMap struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(manifests["configmap.yaml"]), &configMap))
	file := filepath.Join(t.TempDir(), "dispatcher.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configMap.Data["dispatcher.yaml"]), 0o600))
	env := []string{"DATABASE_URL=postgres://localhost/orders", "SECRET=whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))}
	_, err = in(".", env, program(t), "check", "-c", file)
	require.NoError(t, err)

	for _, name := range []string{"deployment.yaml", "migrate.yaml"} {
		var arguments []string
		for _, argument := range at(t, pod(t, manifests[name]), "containers", "args").([]any) {
			arguments = append(arguments, argument.(string))
		}
		_, err = in(".", env, program(t), append(arguments, "--help")...)
		require.NoError(t, err, name)
	}
}

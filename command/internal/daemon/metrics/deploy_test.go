package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	alerts    = "../../../../deploy/prometheus/alerts.yaml"
	dashboard = "../../../../deploy/grafana/dashboard.json"
	handbook  = "../../../../docs/operations.md"
	runbook   = "../../../../docs/runbook.md"
)

// exported are the names of the series that a process has, and those of their
// metrics.
func exported(t testing.TB) (series, metrics map[string]bool) {
	t.Helper()
	m := New([]string{"a", "b"})
	everything(m)
	series, metrics = map[string]bool{}, map[string]bool{}
	for _, family := range gather(t, m) {
		name := family.GetName()
		if !strings.HasPrefix(name, namespace) {
			continue
		}
		metrics[name] = true
		if family.GetType() != dto.MetricType_HISTOGRAM {
			series[name] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			series[name+suffix] = true
		}
	}
	return series, metrics
}

var seriesNames = regexp.MustCompile(namespace + `_[a-z_]+`)

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// queries are those of the dashboard's panels.
func queries(t testing.TB) []string {
	t.Helper()
	var document struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, dashboard)), &document))
	var all []string
	for _, panel := range document.Panels {
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	require.NotEmpty(t, all)
	return all
}

func TestDeploy_NamesOnlyWhatIsExported(t *testing.T) {
	t.Parallel()
	series, metrics := exported(t)
	for _, path := range []string{alerts, dashboard} {
		names := seriesNames.FindAllString(read(t, path), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.True(t, series[name] || metrics[name] && path == alerts, "%s names %s", path, name)
		}
	}
	for _, query := range queries(t) {
		require.True(t, series[seriesNames.FindString(query)], query)
	}
}

func TestDeploy_TheDashboardAndTheHandbookShowEverything(t *testing.T) {
	t.Parallel()
	_, metrics := exported(t)
	shown := strings.Join(queries(t), "\n")
	text := read(t, handbook)
	for name := range metrics {
		require.Contains(t, shown, name)
		require.Contains(t, text, "`"+name)
	}
	tables := []string{"ordered_dispatcher_applied", "ordered_dispatcher_refused"} // of the sql sink
	for _, name := range seriesNames.FindAllString(text, -1) {
		require.True(t, metrics[name] || slices.Contains(tables, name), "the handbook names %s", name)
	}
}

// runbookURL is where the page is that the alerts link to.
const runbookURL = "https://github.com/ordered-dispatcher/ordered-dispatcher/blob/main/docs/runbook.md#"

// sections are those of the runbook, by their anchors.
func sections(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, section := range strings.Split(read(t, runbook), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		all[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = text
	}
	return all
}

var alertRule = regexp.MustCompile(`(?s)- alert: (\w+)\n(.*?)(?:\n\n|\z)`)

func TestDeploy_TheRunbookHasASectionForEachAlert(t *testing.T) {
	t.Parallel()
	rules := alertRule.FindAllStringSubmatch(read(t, alerts), -1)
	require.Len(t, rules, strings.Count(read(t, alerts), "- alert: "))
	all := sections(t)
	for _, rule := range rules {
		_, url, found := strings.Cut(rule[2], "runbook_url: ")
		require.True(t, found, rule[1])
		url, _, _ = strings.Cut(url, "\n")
		anchor, ours := strings.CutPrefix(url, runbookURL)
		require.True(t, ours, url)
		require.Contains(t, all, anchor, rule[1])
		require.Contains(t, all[anchor], "lert `"+rule[1]+"`", "the section names its alert")
		require.Contains(t, read(t, strings.Replace(alerts, "alerts", "alerts_test", 1)), "alertname: "+rule[1]+"\n", "it is tested that it fires")
	}
}

// On the worst day, each section has the same four answers.
func TestDeploy_EachSectionOfTheRunbookHasItsParts(t *testing.T) {
	t.Parallel()
	all := sections(t)
	require.Greater(t, len(all), 15)
	for anchor, text := range all {
		for _, part := range []string{"**You see:**", "**It means:**", "**Run:**", "**Do not**"} {
			require.Contains(t, text, part, anchor)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(#([a-z-]+)\)`).FindAllStringSubmatch(read(t, runbook), -1) {
		require.Contains(t, all, link[1])
	}
}

func promtool(t testing.TB, args ...string) {
	t.Helper()
	output, err := exec.Command(pgtest.Require(t, "promtool"), args...).CombinedOutput()
	require.NoError(t, err, string(output))
}

func TestDeploy_AlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", alerts)
	promtool(t, "test", "rules", strings.Replace(alerts, "alerts", "alerts_test", 1))
}

// Prometheus understands what the dashboard asks.
func TestDeploy_TheDashboardAsksInPromQL(t *testing.T) {
	t.Parallel()
	variables := strings.NewReplacer("$__rate_interval", "5m", "$process", "a|b")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, query := range queries(t) {
		text, err := json.Marshal(variables.Replace(query))
		require.NoError(t, err)
		rules.WriteString("  - {record: 'a:b', expr: " + string(text) + "}\n")
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rules.String()), 0o600))
	promtool(t, "check", "rules", "--lint=none", path)
}

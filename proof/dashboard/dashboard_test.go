package dashboard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/require"
)

func text(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "grafana", "dashboard.json"))
	require.NoError(t, err)
	return text
}

func TestDashboard_IsOneToGrafanasModel(t *testing.T) {
	t.Parallel()
	plugins.RegisterDefaultPlugins()
	whole := string(text(t))
	read := func(text string) error {
		//lint:ignore SA1019 this is the model that every Grafana imports; the second one needs Grafana 12
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict([]byte(text)); err != nil && err.Error() != "" { // an empty list of faults is an error, too
			return err
		}
		return d.Validate()
	}
	require.NoError(t, read(whole))
	for was, wrong := range map[string]string{
		`"editable": true`: `"editible": true`, `"legendFormat":`: `"legend":`, `"gridPos":`: `"gridpos":`, `"textMode":`: `"textmode":`,
	} {
		require.Contains(t, whole, was)
		require.Error(t, read(strings.Replace(whole, was, wrong, 1)), "the model is strict about %s", was)
	}
}

// panel is what places a panel.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
}

func TestDashboard_HasItsRowsInThisOrderAndNoPanelOverAnother(t *testing.T) {
	t.Parallel()
	var d struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text(t), &d))
	var rows []string
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
		require.NotEmpty(t, rows, "a panel before the first row")
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	require.Equal(t, []string{"What needs me", "Lag, by cause", "Throughput", "Receivers", "Workers and database", "Retention and messages"}, rows)
}

package console

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

func TestLatency_TheTextSaysThatItIsOfTheLatestDelivery(t *testing.T) {
	t.Parallel()
	seconds := 120.0
	p := desk.Process{Series: []desk.Point{{}, {Latency: &seconds}, {}}}
	require.Equal(t, "From creation to delivery: the latest took 2 min", latencyText(p))
	require.Contains(t, seriesOf(p), `"latency":[null,120,null]`)
	require.Equal(t, "From creation to delivery: no delivery was seen in this time", latencyText(desk.Process{Series: []desk.Point{{}}}))
}

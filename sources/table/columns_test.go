package table

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A preset names any column, also one that has a default. A name of the configuration comes before.
func TestColumns_AllOfThemAreTakenOverFromAPreset(t *testing.T) {
	t.Parallel()
	var preset, mine Columns
	for i, column := range preset.all() {
		*column = reflect.TypeFor[Columns]().Field(i).Name
	}
	require.Len(t, preset.all(), reflect.TypeFor[Columns]().NumField())
	require.Equal(t, preset, mine.or(preset))
	for i, column := range mine.all() {
		one := Columns{}
		*one.all()[i] = "mine"
		want := preset
		*want.all()[i] = "mine"
		require.Equal(t, want, one.or(preset), *column)
	}
	require.Equal(t, Columns{ID: "id", CreatedAt: "created_at", Key: "key", Type: "type", Headers: "headers", Payload: "payload"},
		Config{Preset: Outbox}.withDefaults().Columns)
}

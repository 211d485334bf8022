package knob_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
)

type login struct {
	User     string `knob:"user" need:"user: ann"`
	Password string `knob:"password" secret:"true"`
}

type declare struct {
	Replicas int `knob:"replicas" default:"1" min:"1" max:"5"`
}

type config struct {
	Topic   string        `knob:"topic" need:"topic: orders"`
	Window  int           `knob:"window" default:"1" min:"1" max:"10_000"`
	Timeout time.Duration `knob:"timeout" default:"30s" min:"1ms" max:"1h"`
	Packing string        `knob:"compression" default:"snappy" oneof:"none gzip snappy"`
	Jitter  int           `knob:"jitter" default:"20" min:"0" max:"100" percent:"true"`
	Login   *login        `knob:"login"`
	Declare declare       `knob:"declare"`
	Secrets []string      `references:"topic"`
	Writer  any
}

func TestFill_GivesZeroValuesTheirDefaults(t *testing.T) {
	t.Parallel()
	c := config{Topic: "a", Window: 7}
	knob.Fill(&c)
	require.Equal(t, config{Topic: "a", Window: 7, Timeout: 30 * time.Second, Packing: "snappy", Jitter: 20, Declare: declare{Replicas: 1}}, c)
	require.NoError(t, knob.Check(c))
}

func TestCheck_NamesEveryFaultAtOnceAndNoSecret(t *testing.T) {
	t.Parallel()
	c := config{Window: 10_001, Timeout: 2 * time.Hour, Packing: "rar", Jitter: 101, Login: &login{Password: "hush"}, Declare: declare{Replicas: 6}}
	require.EqualError(t, knob.Check(&c), `topic is missing: write it as in topic: orders
window must be between 1 and 10000, got 10001
timeout must be between 1ms and 1h0m0s, got 2h0m0s
compression must be none, gzip or snappy, got "rar"
jitter must be between 0% and 100%, got 101%
login.user is missing: write it as in user: ann
declare.replicas must be between 1 and 5, got 6`)
}

func TestOf_KeepsTheOrderAndPassesOverOtherFields(t *testing.T) {
	t.Parallel()
	var names []string
	for _, k := range knob.Of(reflect.TypeFor[config]()) {
		names = append(names, k.Name)
	}
	require.Equal(t, []string{"topic", "window", "timeout", "compression", "jitter", "login", "declare", ""}, names)
}

func TestOf_ASettingOfTheLibraryIsNoKey(t *testing.T) {
	t.Parallel()
	type library struct {
		Grace time.Duration `knob:"-grace" default:"20s" min:"1ns" max:"1m"`
	}
	all := knob.Of(reflect.TypeFor[library]())
	require.Len(t, all, 1)
	require.True(t, all[0].Library)
	var c library
	knob.Fill(&c)
	require.Equal(t, 20*time.Second, c.Grace)
	require.EqualError(t, knob.Check(library{Grace: -1}), "grace must be between 1ns and 1m0s, got -1ns")
}

func TestOf_AWrongTagPanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		_ = knob.Check(struct {
			A int `knob:"a" min:"one"`
		}{})
	})
}

func TestInt_ReadsTheSettingOfAName(t *testing.T) {
	t.Parallel()
	require.Equal(t, 5, knob.Int(&config{Window: 5}, "window"))
	require.Zero(t, knob.Int(config{}, "nothing"))
}

func TestCheck_AListWithoutAnElementIsMissing(t *testing.T) {
	t.Parallel()
	type brokers struct {
		Brokers []string `knob:"brokers" need:"brokers: [a:9092]"`
	}
	require.ErrorContains(t, knob.Check(brokers{Brokers: []string{}}), "brokers is missing")
	require.NoError(t, knob.Check(brokers{Brokers: []string{"a:9092"}}))
}

type pace struct {
	Batch      int           `knob:"batch" default:"500" min:"1" max:"10_000"`
	Checkpoint int           `knob:"checkpoint" default:"1" min:"1" max:"batch"`
	Initial    time.Duration `knob:"initial" default:"100ms" min:"1ms" max:"24h"`
	Max        time.Duration `knob:"max" default:"1m" min:"initial" max:"24h"`
	Jitter     int           `knob:"jitter" default:"20" min:"0" max:"100" percent:"true" zero:"-1"`
	Breaker    breaker       `knob:"breaker"`
}

type breaker struct {
	Failures int           `knob:"failures" need:"failures: 10" min:"1" max:"100"`
	Cooldown time.Duration `knob:"cooldown" default:"30s" min:"1ms" max:"24h"`
}

func TestFill_ADefaultKeepsToABoundThatIsAnotherSetting(t *testing.T) {
	t.Parallel()
	c := pace{Initial: time.Hour}
	knob.Fill(&c)
	require.Equal(t, pace{Batch: 500, Checkpoint: 1, Initial: time.Hour, Max: time.Hour, Jitter: 20}, c, "a breaker that is not given stays so")
	require.NoError(t, knob.Check(c))
	c = pace{Breaker: breaker{Failures: 3}, Jitter: -1}
	knob.Fill(&c)
	require.Equal(t, 30*time.Second, c.Breaker.Cooldown)
	require.Equal(t, -1, c.Jitter)
	require.NoError(t, knob.Check(c))
}

func TestCheck_ABoundMayBeAnotherSetting(t *testing.T) {
	t.Parallel()
	require.EqualError(t, knob.Check(pace{Batch: 10, Checkpoint: 11, Initial: time.Second, Max: time.Millisecond, Jitter: -2, Breaker: breaker{Cooldown: time.Second}}),
		`checkpoint must be between 1 and 10, got 11
max must be between 1s and 24h0m0s, got 1ms
jitter must be between 0% and 100%, got -2%
breaker.failures is missing: write it as in failures: 10`)
}

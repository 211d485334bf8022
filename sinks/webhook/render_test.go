package webhook

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// TestRender_ShowsNoSecret: what may be one is Hidden, so that a change of it is seen.
func TestRender_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	d := processor.Delivery{Process: "sms", Record: processor.Record{Table: "t", ID: "1", Key: "ann", Type: "made", Payload: []byte(`{}`)}}
	for _, c := range []struct {
		Config
		target string
	}{
		{Config{URL: "https://user:canary@host/in/{{.Key}}?type={{.Type}}"}, "POST https://host/in/ann?type=made"},
		{Config{URL: "https://host/in?token=canary&type={{.Type}}"}, "POST https://host/in?token=[secret]&type=made"},
		{Config{URL: "https://host/hooks/canary4711canary/{{.Key}}"}, "POST https://host/hooks/[secret]/ann"},
		{Config{URL: "https://host/canary/{{.Key}}", Secrets: []string{"canary"}}, "POST https://host/[secret]/ann"},
		{Config{URL: "https://host/v1/send", Secrets: []string{"https://host/v1/send"}}, "POST https://host/v1/send"},
		{Config{URL: "https://host", Bearer: "canary", Headers: map[string]string{"X-Key": "canary"}, Secret: "canary4711canary4711canary"}, "POST https://host/"},
	} {
		s, err := New(c.Config)
		require.NoError(t, err)
		call, err := s.Render(d)
		require.NoError(t, err)
		require.Equal(t, c.target, call.Target)
		for name, value := range call.Headers {
			require.NotContains(t, value, "canary")
			require.NotContains(t, name, "ignature")
			require.NotEqual(t, "Authorization", name)
		}
		require.Equal(t, "made", call.Headers["Ordered-Type"])
		require.Equal(t, "{}", string(call.Body))
		if c.Secrets == nil {
			require.Contains(t, call.Hidden, "canary")
		}
	}
}

func TestRender_ARecordThatCannotBeSentIsPermanent(t *testing.T) {
	t.Parallel()
	s, err := New(Config{URL: "https://host/{{.Key}}"})
	require.NoError(t, err)
	_, err = s.Render(processor.Delivery{})
	require.True(t, processor.IsPermanent(err))
}

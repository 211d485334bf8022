package desk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDoctor_WhoeverStopsWaitingLeaves(t *testing.T) {
	t.Parallel()
	d, link := linked(t)
	link.Stall()
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = d.Doctor(t.Context())
	}()
	brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := d.Doctor(brief)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	select {
	case <-first:
		require.Fail(t, "the examination had ended")
	default:
	}
	link.Resume()
	<-first
	report, err := d.Doctor(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, report.Findings, "the examination went on")
}

func TestDoctor_AFailureIsSharedAndTheNextOneBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d doctor
		examined, broken, release := 0, errors.New("it broke"), make(chan struct{})
		examine := func() (Report, error) {
			examined++
			<-release
			if examined == 1 {
				return Report{}, broken
			}
			return Report{At: time.Now()}, nil
		}
		answers := make(chan error, 5)
		ask := func(ctx context.Context) {
			_, err := d.answer(ctx, examine)
			answers <- err
		}
		gone, leave := context.WithCancel(t.Context())
		go ask(gone) // who asks first may leave, too
		synctest.Wait()
		for range 4 {
			go ask(t.Context())
		}
		leave()
		require.ErrorIs(t, <-answers, context.Canceled)
		synctest.Wait()
		close(release)
		for range 4 {
			require.ErrorIs(t, <-answers, broken)
		}
		require.Equal(t, 1, examined)
		for range 2 {
			_, err := d.answer(t.Context(), examine)
			require.NoError(t, err)
		}
		require.Equal(t, 2, examined, "the failure is not kept, and the report is")
		time.Sleep(reportAge)
		_, err := d.answer(t.Context(), examine)
		require.NoError(t, err)
		require.Equal(t, 3, examined)
	})
}

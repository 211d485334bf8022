package main

import (
	"context"
	"fmt"
	"slices"
)

// rounds is how often each contestant is measured, after one round that only warms up.
const rounds = 7

// contestant is one way to do the work.
type contestant struct {
	name string
	// measure does the work once and returns the result: of all contestants in the same unit.
	measure func(ctx context.Context) (float64, error)
}

// alternate lets the contestants work in turn, A B A B …, and returns the results of each.
func (b *bench) alternate(ctx context.Context, contestants ...contestant) ([][]float64, error) {
	results := make([][]float64, len(contestants))
	for round := range rounds + 1 {
		for i, c := range contestants {
			result, err := c.measure(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			b.log.Info(c.name, "round", round, "result", figure(result))
			if round > 0 {
				results[i] = append(results[i], result)
			}
		}
	}
	return results, nil
}

// spread is the median of some values, with the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{median: (sorted[(n-1)/2] + sorted[n/2]) / 2, low: sorted[0], high: sorted[n-1]}
}

// ratio divides round by round.
func ratio(over, under []float64) spread {
	quotients := make([]float64, len(over))
	for i := range over {
		quotients[i] = over[i] / under[i]
	}
	return spreadOf(quotients)
}

// percentile returns the value that so many percent of the sorted values do not exceed.
func percentile(sorted []float64, percent int) float64 {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

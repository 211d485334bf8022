package prove

import (
	"math"
	"time"
)

// Latency is how durations are spread. A percentile is at most 5 % too long, and up to 1 ms counts as 0.
type Latency struct {
	Rows int           `json:"rows"`
	P50  time.Duration `json:"p50_ns"`
	P95  time.Duration `json:"p95_ns"`
	Max  time.Duration `json:"max_ns"`
}

// spread counts durations in buckets that grow by 5 %, from 1 ms to more than a day. So its memory is fixed.
type spread struct {
	buckets [400]int
	count   int
	longest time.Duration
}

const growth = 1.05

func (s *spread) add(d time.Duration) {
	d = max(d, 0)
	s.count++
	s.longest = max(s.longest, d)
	bucket := 0
	if d > time.Millisecond {
		bucket = int(math.Ceil(math.Log(float64(d)/float64(time.Millisecond)) / math.Log(growth)))
	}
	s.buckets[min(bucket, len(s.buckets)-1)]++
}

// at returns the duration that a share of all does not exceed.
func (s *spread) at(share float64) time.Duration {
	rest := int(math.Ceil(share * float64(s.count)))
	for bucket, n := range s.buckets {
		if rest -= n; rest <= 0 && s.count > 0 {
			if bucket == 0 {
				return 0
			}
			return min(s.longest, time.Duration(math.Pow(growth, float64(bucket))*float64(time.Millisecond)))
		}
	}
	return s.longest
}

func (s *spread) latency() Latency {
	return Latency{Rows: s.count, P50: s.at(0.5), P95: s.at(0.95), Max: s.longest}
}

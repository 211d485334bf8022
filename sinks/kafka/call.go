package kafka

import "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// call is one DeliverBatch. It never sends a record again whose acknowledgement it has seen, wherever that record is:
// a refusal in one partition leaves later records in others acknowledged. Each partition continues after its own last
// record, so each keeps its order.
type call struct {
	ds    []processor.Delivery
	left  []int // records whose acknowledgement was not seen, in order
	limit int   // number of records of the next window
}

func newCall(ds []processor.Delivery, limit int) *call {
	c := &call{ds: ds, left: make([]int, len(ds)), limit: limit}
	for i := range c.left {
		c.left[i] = i
	}
	return c
}

// acknowledged returns how many records are acknowledged, from the first on.
func (c *call) acknowledged() int {
	if len(c.left) == 0 {
		return len(c.ds)
	}
	return c.left[0]
}

// window returns the records that may go next.
func (c *call) window() []int { return c.left[:min(len(c.left), c.limit)] }

// settle takes out the acknowledged records of a window. The window is the beginning of left.
func (c *call) settle(window []place) {
	first := len(window)
	for i := len(window) - 1; i >= 0; i-- {
		if !window[i].acknowledged {
			first--
			c.left[first] = c.left[i]
		}
	}
	c.left = c.left[first:]
}

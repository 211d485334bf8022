package kafka

import "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// call is one DeliverBatch. What it has seen acknowledged it does not send again, wherever that is: a refusal in one
// partition leaves those behind it in others acknowledged. The records of each partition go on behind its last one, so each keeps its order.
type call struct {
	ds    []processor.Delivery
	left  []int // those that were not seen acknowledged, in order
	limit int   // of the records of the next window
}

func newCall(ds []processor.Delivery, limit int) *call {
	c := &call{ds: ds, left: make([]int, len(ds)), limit: limit}
	for i := range c.left {
		c.left[i] = i
	}
	return c
}

// acknowledged is how many records are, from the first on.
func (c *call) acknowledged() int {
	if len(c.left) == 0 {
		return len(c.ds)
	}
	return c.left[0]
}

// window are those that may go next.
func (c *call) window() []int { return c.left[:min(len(c.left), c.limit)] }

// settle takes out what was acknowledged of a window, which is the first of what is left.
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

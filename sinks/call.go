package sinks

import "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// Call is what a sink sends to its receiver for one record.
type Call struct {
	// Target is where the call goes, such as a URL or a topic. It holds no credentials.
	Target string
	// Headers are those that come from the record and its delivery, as they go out, in the spelling of the protocol. They
	// hold no signature, no header from the configuration, and no time of sending.
	Headers map[string]string
	// Body is the payload in the form in which it goes out.
	Body []byte
	// Hidden is what else goes out that may be secret, such as a header from the configuration. It may be compared, and is
	// neither stored nor shown.
	Hidden string
}

// Renderer is a sink, not a Config, that can return the call for a record without making it. Render connects to nothing,
// and uses the code that sends. If the record cannot be sent, it returns the error that a delivery would. A Renderer is safe for
// concurrent use.
type Renderer interface {
	Render(d processor.Delivery) (Call, error)
}

// Package cloudevents holds the events of the webhook sink against the SDK of CloudEvents. It has tests alone. They are
// not in package webhook, since the library does not require the SDK.
package cloudevents

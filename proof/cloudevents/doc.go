// Package cloudevents compares the events of the webhook sink with the SDK of CloudEvents. It has only tests. They
// are not in package webhook, since the library does not require the SDK.
package cloudevents

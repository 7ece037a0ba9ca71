// Package intake holds what every chat-like source needs between an incoming event and the desk: reading a bounded
// request body, the commands stop, status, retry and help, pacing, the state of incoming events, background calls,
// and small caches and memos.
//
// It knows no product: a source decides who may do what, and converts the sentences from here to its own notation.
// The package does not authenticate and does not post. The desk, not this package, looks for the question that a
// message answers.
//
// All types are safe for concurrent use unless their comment says otherwise.
package intake

// Package intake holds what every chat-like source needs between an incoming event and the desk: reading a bounded request body, the
// commands stop, status, retry and help, pacing, what is known of incoming events, background calls, and small caches and memos.
//
// It knows no product: a source decides who may do what, and turns the sentences that it gets here into its own notation. It does
// not authenticate, does not post, and does not look for the question that a message answers, which is the desk's work.
//
// All types are safe for concurrent use unless their comment says otherwise.
package intake

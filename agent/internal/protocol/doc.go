// Package protocol speaks the stream-json protocol of the Claude Code CLI.
//
// A [Stdin] writes the CLI's input. A [Stream] reads its output and reports to a [Handler]. A [Control] sends requests
// to the CLI and answers the CLI's requests. The package decides nothing: it does not know why a run ends, what a
// failure means, or which tools an agent may use.
//
// Reading never waits for a Handler's decisions, and memory is bounded for all runs together by a [Budget]. Every line
// is logged whole. An object of the protocol is recognised on a line of its own, next to other objects, or at the end
// of a line of text, but never inside another value, which a tool could have written. JSON that the CLI splits over
// several lines is logged and not understood; it never does that.
package protocol

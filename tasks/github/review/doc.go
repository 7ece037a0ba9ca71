// Package review is what a review of a pull request is made of, without the network: what the agent found, where in the diff that
// can be said, and in which words. What was said before is kept by the ledger, which turns an Answer into a Plan; the source posts it.
//
// It promises:
//   - Read takes an answer only whole and within bounds: what a model made up cannot become something GitHub refuses.
//   - A finding is put on a line only if that line is inside a hunk of the diff it was given; whatever has no such line is in the
//     summary, so nothing is lost.
//   - A suggestion is offered as such only if it replaces exactly the lines it stands at.
//   - A Ledger is bounded, and settles a task once: the same task gets the same Plan, in every process. No plan has as new what was told before
//     and is still open, or what people have settled.
//   - No finding in a body reaches beyond its own item, whatever the agent left open in it.
//
// It does not make the agent's words harmless: the source does, before it hands them on.
//
// Nothing here has state but a Ledger, which belongs to one goroutine at a time: all else may be called from any.
package review

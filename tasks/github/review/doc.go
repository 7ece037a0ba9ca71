// Package review holds the parts of a pull request review that need no network: the findings, their places in the diff
// and their wording. The ledger remembers earlier findings and turns an Answer into a Plan, which the source posts.
//
// It promises:
//   - Read accepts an answer only as a whole and within bounds, so GitHub does not refuse text that a model made up.
//   - A finding is put on a line only if that line is inside a hunk of the given diff. All other findings go into the
//     summary, so none is lost.
//   - A suggestion is offered as such only if it replaces exactly the lines of its finding.
//   - A Ledger is bounded, and settles a task once: the same task gets the same Plan in every process. A plan does not
//     list as new any finding that is posted and still open, or that people have settled.
//   - A finding's text cannot reach beyond its own item, even if the agent left Markdown open in it.
//
// It does not make the agent's words harmless; the source does so before it passes them in.
//
// Only a Ledger has state, and only one goroutine may use it at a time. Everything else may be called from any
// goroutine.
package review

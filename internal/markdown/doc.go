// Package markdown splits and neutralises Markdown that strangers may have influenced, for all places that errand posts
// to or reads from.
//
//   - A CommonMark parser (goldmark) decides what is code and what is prose.
//   - Neutral returns text that mentions nobody, loads nothing, draws nothing, offers no change to commit and has no HTML when GitHub
//     renders it. Code that every parser takes for code stays as it is, as do definitions of links and footnotes, which GitHub shows
//     only where something refers to them.
//   - Shown returns the words that a page shows, without those that only its source has.
//   - Split cuts at block boundaries where possible. A block of code that is cut is closed and reopened in the next part.
//   - Time is bounded by the length of the text: a text that would take longer is shown as one block of code.
//
// The package does not render Markdown and does not know Slack's notation. All functions are pure and may be called
// from any goroutine.
package markdown

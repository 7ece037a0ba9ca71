// Package markdown splits and neutralises Markdown that strangers may have influenced, for every place errand posts to or reads from.
//
// It promises:
//   - What is code and what is prose, a CommonMark parser decides (goldmark). Nothing here looks for fences by itself.
//   - Neutral returns text that pings nobody, loads nothing, draws nothing, offers no change to commit and has no HTML where GitHub renders
//     it. Code that is certainly code stays as it is. Definitions of links and footnotes stay, which GitHub does not show where nothing refers
//     to them.
//   - Shown returns the words that a page shows, and none of those that only its source has.
//   - Split cuts at the parser's block boundaries where it can. A block of code that is cut ends with its part and begins again in the next one.
//   - Time is bounded by the length of the text: what would take the parser longer is shown as one block of code.
//
// It does not render Markdown, and knows nothing of Slack's own notation.
//
// All functions are pure and may be called from any goroutine.
package markdown

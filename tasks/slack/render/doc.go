// Package render turns Markdown, endings, questions and states of tasks into Slack messages: blocks, and text where Slack takes no blocks.
//
// Everything here is a function of its arguments; nothing calls Slack. It promises that text of agents and strangers pings nobody and
// shows as it is written, and that every message stays within Slack's limits, in as many parts as it takes. Each message carries a
// [Marker], by which a later attempt finds it.
package render

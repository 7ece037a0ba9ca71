// Package chat is the source for whoever talks to errand itself: the HTTP API, and through it the console and the command line.
// A message posted to /api/chat becomes a task, and its answer is streamed back as server-sent events.
//
// It promises that the first event names the task, so that a reader who is cut off can come back to it; that a closed connection
// cancels nothing; that a local directory is worked in only below the configured roots, whatever links lead where; and that a
// Redis that is away is told within 3 s. It does not promise that the streamed words are the answer: a run that was interrupted
// says some of them twice, and what Redis could not take in time is missing. The result of the last event is the answer.
//
// Nothing here authenticates: the front door lets nobody pass without the console's token. A Source may be used from any
// goroutine; Listen is called once.
package chat

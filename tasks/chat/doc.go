// Package chat is the source of requests made to errand itself: by the HTTP API, and through it by the console and the command line.
// A message posted to /api/chat becomes a task, and its answer is streamed back as server-sent events.
//
// It promises that the first event names the task, so that a reader who is cut off can come back to it; that a closed connection
// cancels nothing; that tasks work only in local directories below the configured roots, wherever links lead; and that a failure of
// Redis is reported within 3 s. It does not promise that the streamed words are the answer: a run that was interrupted repeats some
// of them, and words that Redis could not store in time are missing. The result of the last event is the answer.
//
// Nothing here authenticates: the front door requires the console's token. A Source may be used from any
// goroutine; Listen is called once.
package chat

// Package web is the face that the fleet shows to a browser and to scripts: the console, the API over JSON and server-sent events,
// health, and asynqmon's view of the queues.
//
// It promises that nothing is shown or done without the console's token or the word of a proxy that was named to it, apart from
// /livez, /readyz, the login, styles and scripts, and the routes of sources that guard themselves by a signature: what nobody has
// declared open is closed. It promises that another site cannot act through a visitor's browser, that whatever people and agents wrote is
// shown as text and never becomes markup, and that a task's return address (Task.Origin) stays inside. Streams end promptly when the
// handler is closed and hold no reader who stopped reading.
//
// It does not tell users apart in what they may do: whoever comes in may do everything here. It does not limit attempts to guess the
// token, which is why that has to be long and random. Timeouts of whole requests are the server's, hence the caller's.
//
// A Handler may be used from any number of goroutines. What it reads of tasks comes from the desk and, of their events, logs and workers, from
// the store; it changes things only through the desk.
package web

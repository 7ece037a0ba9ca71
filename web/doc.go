// Package web puts together what the fleet shows over HTTP: the pages of web/console, the JSON API of web/api, the
// probes, and the routes of the sources.
//
// Every route needs the console token or the word of a configured proxy (web/auth), except the probes, the login,
// styles and scripts, and the routes of sources that verify a signature. A route that is not declared public is closed.
// Another site cannot act through a visitor's browser. Event streams end when the handler is closed, and when a reader
// stops reading. Every visitor may do everything; rights are not distinguished. Limits on the duration of whole
// requests are the server's, and so the caller's.
//
// A Handler may be used from any number of goroutines. It changes tasks only through the desk.
package web

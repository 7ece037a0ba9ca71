// Package doctor holds what a source or a forge reports about the set-up of the service it works with.
package doctor

// Finding is one fact about how a service is set up, in words for an operator.
type Finding struct {
	What   string // the state
	Why    string // its consequence; empty if all is well
	Remedy string
	Fatal  bool // nothing works until it is fixed
}

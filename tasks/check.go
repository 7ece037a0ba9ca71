package tasks

// Check is one look at how a service is set up that a source works with, in words for an operator.
type Check struct {
	What   string // how it is
	Why    string // what that costs; empty: it is well
	Remedy string
	Fatal  bool // nobody is served until it is mended
}

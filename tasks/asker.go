package tasks

// Asker is who asks for something: an account in a source.
type Asker struct {
	Source  string `json:"source"`
	Account string `json:"account"`
	Login   string `json:"login,omitempty"` // on the forge, if the front door knows it
	ID      int64  `json:"-"`               // that Login's account had when the person linked it; 0: no link is in use
	// Partial means that their role at the front door holds in some repositories only, and that Login does not say
	// what they may do elsewhere.
	Partial bool `json:"partial,omitempty"`
}

// AskedBy returns who asked for a task: the person who retried it, or its author.
func (t Task) AskedBy() Asker {
	if t.Retrier != (Asker{}) {
		return t.Retrier
	}
	return Asker{Source: t.Source, Account: t.Actor, Login: t.Login, Partial: t.Partial}
}

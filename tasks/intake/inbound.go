package intake

import (
	"sync"
	"time"
)

// Inbound records the events and connections of a front door. The zero value is ready to use.
type Inbound struct {
	mu          sync.Mutex
	last        time.Time
	refused     time.Time
	connections int
	err         error
}

// Accepted records an event whose sender was authenticated.
func (i *Inbound) Accepted(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = at
}

// Refused records a request with a wrong signature.
func (i *Inbound) Refused(at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refused = at
}

// Connected counts a connection that events arrive on.
func (i *Inbound) Connected() { i.addConnections(1) }

// Disconnected counts a connection that has ended.
func (i *Inbound) Disconnected() { i.addConnections(-1) }

func (i *Inbound) addConnections(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.connections += n
}

// ConnectionFailed records why a connection could not be made or has ended.
func (i *Inbound) ConnectionFailed(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

// Last returns when the last event was accepted; zero if none was.
func (i *Inbound) Last() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last
}

// ConnectionErr returns the last connection error, or nil while there is a connection.
func (i *Inbound) ConnectionErr() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.connections > 0 {
		return nil
	}
	return i.err
}

// LastRefused reports whether the most recent request had a wrong signature.
func (i *Inbound) LastRefused() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refused.After(i.last)
}

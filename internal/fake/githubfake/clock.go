package githubfake

import (
	"sync"
	"time"
)

// Clock is a time that a test moves by hand, for [Config.Now]. It is safe for concurrent use: the fake reads the time
// until its last connection ends.
type Clock struct {
	mu   sync.Mutex
	now  time.Time
	tick time.Duration
}

// NewClock returns a clock that moves on by tick each time it is read.
func NewClock(now time.Time, tick time.Duration) *Clock { return &Clock{now: now, tick: tick} }

// Now moves the clock on by its tick, and returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.tick)
	return c.now
}

// Pass moves the clock on.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to a time.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// inviteTime is how long a link that opens the console may be followed: as long as somebody who started it by hand looks at the terminal.
const inviteTime = 15 * time.Minute

// invites are links that open the console once. They are this process's alone.
type invites struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // by hash, so that the time a look-up takes tells nothing of a code
}

// Invite makes a path that opens the console to whoever follows it first, once, within 15 minutes. Unlike the token it may stand in an
// address, where a browser's history and a proxy's log keep it: by then it is worth nothing.
func (h *Handler) Invite() (path string) {
	code := rand.Text()
	h.invites.add(code, h.now())
	return "/login?once=" + code
}

func (i *invites) add(code string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.until == nil {
		i.until = map[[sha256.Size]byte]time.Time{}
	}
	i.until[sha256.Sum256([]byte(code))] = now.Add(inviteTime)
}

// take uses a code up, and reports whether it was good.
func (i *invites) take(code string, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := sha256.Sum256([]byte(code))
	until, ok := i.until[key]
	delete(i.until, key)
	return ok && now.Before(until)
}

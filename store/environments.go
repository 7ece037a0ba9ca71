package store

import (
	"strconv"
	"strings"
	"time"
)

// Rebuild says that the runs of a repository do not use environments from before At, and who wanted that. The zero
// value says nothing.
type Rebuild struct {
	Repo string    `json:"repo"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// Name returns the ID of an environment that is set up after the rebuild. key identifies what it contains.
func (r Rebuild) Name(key string) string { return key + r.suffix() }

// Outdated reports whether an environment of the repository was set up before the rebuild, by its ID: clocks may
// differ.
func (r Rebuild) Outdated(id string) bool { return !strings.HasSuffix(id, r.suffix()) }

func (r Rebuild) suffix() string {
	if r.At.IsZero() {
		return ""
	}
	return "-" + strconv.FormatInt(r.At.UnixMicro(), 10)
}

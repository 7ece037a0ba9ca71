// Package jitter spreads waits, so that what failed together is not retried together. Its functions are safe for
// concurrent use.
package jitter

import (
	"math/rand/v2"
	"time"
)

// Around returns a random duration of d ± 50 %.
func Around(d time.Duration) time.Duration { return d/2 + UpTo(d) }

// UpTo returns a random duration from 0 to d, which must not be negative.
func UpTo(d time.Duration) time.Duration { return rand.N(max(d, 1)) }

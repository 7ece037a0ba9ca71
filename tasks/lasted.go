package tasks

import (
	"strings"
	"time"
)

// Lasted writes a duration in whole seconds as people do: 2h, 15m, 1h0m5s.
func Lasted(d time.Duration) string {
	s := d.Round(time.Second).String()
	if cut := strings.TrimSuffix(s, "m0s"); cut != s {
		s = cut + "m"
	}
	if cut := strings.TrimSuffix(s, "h0m"); cut != s {
		s = cut + "h"
	}
	return s
}

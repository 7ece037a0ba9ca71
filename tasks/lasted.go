package tasks

import (
	"strings"
	"time"
)

// Lasted writes a duration in whole seconds as people do: 2h, 15m, 1h0m5s.
func Lasted(d time.Duration) string {
	s := d.Round(time.Second).String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}

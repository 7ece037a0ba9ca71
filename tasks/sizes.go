package tasks

import (
	"slices"
)

// Sizes lists the classes of changes by their number of changed lines, the smallest first.
var Sizes = []string{"≤50", "≤200", "≤500", "≤1000", ">1000"}

// SizeOf returns the class of a change; empty if none exists.
func SizeOf(lines int) string {
	if lines <= 0 {
		return ""
	}
	i, _ := slices.BinarySearch([]int{50, 200, 500, 1000}, lines)
	return Sizes[i]
}

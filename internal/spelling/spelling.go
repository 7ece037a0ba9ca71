// Package spelling finds what a misspelled name was meant to be.
package spelling

import "strings"

// Nearest returns the known name with the smallest edit distance to name, or an empty string if each differs in more
// than a third of its letters. The shortest name that continues the given one with another word is preferred.
func Nearest(name string, known []string) (nearest string) {
	best := len(name)/3 + 1
	for _, k := range known {
		d := Distance(name, k)
		if strings.HasPrefix(k, name+"_") {
			d = len(k) - 1000 // before all others, and the shortest first
		}
		if d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// Distance returns the number of letters to insert, delete or replace, or of neighbours to swap, to turn a into b.
func Distance(a, b string) int {
	d := make([][]int, len(a)+1) // between the first i letters of a and the first j letters of b
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], 1+d[i-2][j-2])
			}
		}
	}
	return d[len(a)][len(b)]
}

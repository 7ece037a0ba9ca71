package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that keeps the program from starting, and the way out.
type Problem struct {
	Where  string // the variable, or file:line
	What   string // continues Where: `is not set`
	Remedy string // a request: `set it to …`
}

// String is the problem as one sentence.
func (p Problem) String() string { return p.Where + " " + p.What + "; " + p.Remedy }

// Problems is the error of Load: all that is wrong, in the order of the variables. It never holds a secret's value.
type Problems []Problem

// Error lists the problems, one a line.
func (ps Problems) Error() string {
	var b strings.Builder
	if len(ps) == 1 {
		b.WriteString("configuration: 1 problem")
	} else {
		fmt.Fprintf(&b, "configuration: %d problems", len(ps))
	}
	for _, p := range ps {
		b.WriteString("\n  - " + p.String())
	}
	return b.String()
}

func (ps *Problems) add(where, what, remedy string) {
	*ps = append(*ps, Problem{Where: where, What: what, Remedy: remedy})
}

// has reports whether something is already known to be wrong with a variable, so that what follows from it is not told as well.
func (ps Problems) has(where string) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Where == where })
}

// err avoids the trap of a nil slice in a non-nil error.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// ofRuns are the names of ours that a run has in its environment, in which somebody may start a program; package agent sets them.
var ofRuns = []string{"ERRAND_RUN", "ERRAND_WORKER"}

// Unknown finds the variables of an environment, as os.Environ gives it, that begin like ours and that no program reads, each with the name
// that was probably meant. It tells no values.
func Unknown(environ []string) (list []Problem) {
	known := []string{"ERRAND_PUBLISH"} // docker-compose.yml reads it from the same .env
	for _, s := range new(Config).settings() {
		known = append(known, s.name)
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "ERRAND_") || slices.Contains(known, name) || slices.Contains(ofRuns, name) {
			continue
		}
		remedy := "remove it; .env.example lists the settings"
		if nearest := Nearest(name, known); nearest != "" {
			remedy = "did you mean " + nearest + "?"
		}
		list = append(list, Problem{Where: name, What: "is not a setting of errand and has no effect", Remedy: remedy})
	}
	slices.SortFunc(list, func(a, b Problem) int { return strings.Compare(a.Where, b.Where) })
	return list
}

// Nearest is the name that takes the fewest changes of a letter to get from another to it; empty when each takes more than a third of its
// letters, so that nobody meant it. Names that continue the given one with a further word come first, the shortest of them.
func Nearest(name string, known []string) (nearest string) {
	for _, k := range known {
		if strings.HasPrefix(k, name+"_") && (nearest == "" || len(k) < len(nearest)) {
			nearest = k
		}
	}
	if nearest != "" {
		return nearest
	}
	best := len(name)/3 + 1
	for _, k := range known {
		if d := distance(name, k); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// distance counts the letters to add, to remove or to replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0] // of the letter before in both
		row[0] = i + 1
		for j := range len(b) {
			replace := above
			if a[i] != b[j] {
				replace++
			}
			above = row[j+1]
			row[j+1] = min(replace, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}

package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one configuration error with its remedy.
type Problem struct {
	Where  string // the variable, or file:line
	What   string // continues Where: `is not set`
	Remedy string // an instruction: `set it to …`; empty if What says enough
}

// String returns the problem as one sentence.
func (p Problem) String() string {
	if p.Remedy == "" {
		return p.Where + " " + p.What
	}
	return p.Where + " " + p.What + "; " + p.Remedy
}

// Problems is the error of Load: every problem, in the order of the variables. It contains no secret.
type Problems []Problem

// Error lists the problems, one per line.
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

// has reports whether there is a problem with a variable, so that its consequences need not be reported.
func (ps Problems) has(where string) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Where == where })
}

// err returns the problems as an error, or nil.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// ofRuns are the variables that package agent sets in the environment of a run, where someone may start a program.
var ofRuns = []string{"ERRAND_RUN", "ERRAND_WORKER"}

// Unknown returns a problem for each variable of an environment (see [os.Environ]) that begins with ERRAND_ and is not a setting, with the
// name that was probably meant. It reveals no values.
func Unknown(environ []string) (list []Problem) {
	known := []string{"ERRAND_PUBLISH"} // read by docker-compose.yml
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

// Nearest returns the known name with the smallest edit distance to name, or an empty string if each differs in more than a third of its
// letters. The shortest name that continues the given one with another word is preferred.
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

// distance returns the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0] // the distance without either letter
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

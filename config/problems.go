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

package review

import (
	"strings"
	"unicode"
)

// near is how many lines apart two findings may stand and still be of one place.
const near = 3

// How much two claims have to have in common to be one: at one place, where the place is not known any more, and anywhere in the file. Models
// say the same thing in other words each time they are asked.
const (
	alikeHere    = 0.4
	alikeSome    = 0.6
	alikeWhereso = 0.8
)

// match finds for each of the new findings the known one it repeats, by index; -1 where there is none. A known finding takes all repetitions
// at its own place, but elsewhere in the file only one, and only if none is at its own: the same mistake may be made twice.
func match(known []Known, found []Finding) []int {
	matched, taken := make([]int, len(found)), make([]bool, len(known))
	for i, f := range found {
		matched[i] = best(known, func(k Known) float64 { return here(k, f) })
		if matched[i] >= 0 {
			taken[matched[i]] = true
		}
	}
	for i, f := range found {
		if matched[i] >= 0 {
			continue
		}
		matched[i] = best(known, func(k Known) float64 { return anywhere(k, f) })
		if at := matched[i]; at >= 0 && taken[at] {
			matched[i] = -1
		} else if at >= 0 {
			taken[at] = true
		}
	}
	return matched
}

// best is the known finding that is most alike; of several the last one, whose state is the present one.
func best(known []Known, alike func(Known) float64) int {
	at, most := -1, 0.0
	for i, k := range known {
		if a := alike(k); a > 0 && a >= most {
			at, most = i, a
		}
	}
	return at
}

// here is how much a finding is the known one, at its place; 0: it is another. An agent that names the known one's ID means it.
func here(k Known, f Finding) float64 {
	if f.ID == k.ID {
		return 2
	}
	if k.Path != f.Path || k.Side.actual() != f.Side.actual() || !together(k.Finding, f) {
		return 0
	}
	return enough(alike(k.Claim, f.Claim), alikeHere)
}

// anywhere is the same wherever in the file the finding is.
func anywhere(k Known, f Finding) float64 {
	if k.Path != f.Path {
		return 0
	}
	if k.Line == 0 || f.Line == 0 {
		return enough(alike(k.Claim, f.Claim), alikeSome)
	}
	return enough(alike(k.Claim, f.Claim), alikeWhereso)
}

func enough(a, least float64) float64 {
	if a < least {
		return 0
	}
	return a
}

// actual is the side that is meant.
func (s Side) actual() Side {
	if s == "" {
		return Right
	}
	return s
}

// together reports whether two findings of one file are at one place.
func together(a, b Finding) bool {
	if (a.Line == 0) != (b.Line == 0) {
		return false // one is of the file as a whole
	}
	first := func(f Finding) int {
		if f.StartLine > 0 {
			return f.StartLine
		}
		return f.Line
	}
	return first(a) <= b.Line+near && first(b) <= a.Line+near
}

// alike is what share of the words of two claims they have in common.
func alike(a, b string) float64 {
	x, y := words(a), words(b)
	common := 0
	for w := range x {
		if y[w] {
			common++
		}
	}
	if all := len(x) + len(y) - common; all > 0 {
		return float64(common) / float64(all)
	}
	return 0
}

// filler are words that say nothing of what a sentence is about.
var filler = wordSet("a an the this that these those it its is are was were be been being of to in on at by for from with as and or " +
	"so then than when if while because which who what where there here can could may might will would should must do does did has have had")

// words are those of a claim that matter, without their endings: identifiers stay whole.
func words(s string) map[string]bool {
	all := wordSet(s)
	for w := range all {
		if filler[w] || len(w) == 1 {
			delete(all, w)
		}
	}
	return all
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
		set[stem(w)] = true
	}
	return set
}

// stem takes the commonest endings off an English word: "returns", "returned" and "returning" are one.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if rest, found := strings.CutSuffix(w, end); found && len(rest) >= 4 {
			return strings.TrimSuffix(rest, "e")
		}
	}
	if len(w) > 4 {
		return strings.TrimSuffix(w, "e")
	}
	return w
}

// Package argument checks the words that errand puts into the arguments of the CLI for others: names of models, levels
// of effort and agents. Every user of a machine can read arguments, and a word may look like a flag.
//
// Its function is pure and may be called from any goroutine.
package argument

import "regexp"

var form = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)

// Valid reports whether a word can be an argument. The empty one cannot.
func Valid(word string) bool { return form.MatchString(word) }

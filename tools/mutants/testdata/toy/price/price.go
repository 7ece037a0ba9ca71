// Package price is what the tests of the tool change.
package price

import _ "embed"

//go:embed limit.lua
var Limit string

var asked int

func Cheap(cents int) bool {
	asked++
	return cents > 0 && cents <= 100
}

func Unreached(cents int) bool {
	if cents > 7 {
		return true
	}
	return false
}

package config

import "strings"

// People set secrets from files, whose final line end they do not see, and keys from files of other systems.

// trimmed returns the value of a secret without what surrounds it in a file: line ends, and around a text of several
// lines all white space.
func trimmed(value string) string {
	value = strings.Trim(value, "\r\n")
	if strings.Contains(value, "\n") {
		return strings.TrimSpace(value)
	}
	return value
}

// keyLineEnds are the ways in which a variable has the line ends of a key.
var keyLineEnds = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", "\r\n", "\n")

// keyText returns a key as its file has it. \n may replace a line end, because a file of variables has none.
func keyText(value Secret) string {
	text := strings.TrimSpace(keyLineEnds.Replace(value.Reveal()))
	if text == "" {
		return ""
	}
	return text + "\n"
}

package config

import (
	"path/filepath"
	"strings"
)

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

// keyLineEnds are the ways in which a variable has the line ends of a key. A file of variables may have none.
var keyLineEnds = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", "\r\n", "\n")

// readKey replaces the value of a variable by its private key, without white space around it. The value is the key
// itself, or the absolute path of its file, which is returned.
func readKey(p *Problems, read readFunc, name string, value *Secret) (file string) {
	text := strings.TrimSpace(keyLineEnds.Replace(value.Reveal()))
	*value = ""
	switch {
	case text == "":
	case strings.HasPrefix(text, "-----BEGIN"):
		*value = Secret(text)
	case filepath.IsAbs(text):
		data, err := read(text)
		if err != nil {
			p.add(name, "cannot be read ("+reason(err)+")", "correct the path or the file's permissions")
			return ""
		}
		*value = Secret(strings.TrimSpace(string(data)))
		return filepath.Clean(text)
	default:
		p.add(name, "is neither a private key in PEM form nor the absolute path of its file",
			"set it to the path, or to the content of the file, with \\n for line ends if it must be one line")
	}
	return ""
}

package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// keyLineEnds are the ways in which a variable has the line ends of a key. A file of variables may have none.
var keyLineEnds = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", "\r\n", "\n")

// readKey replaces the value of a variable by its private key, without white space and quotation marks around it. The
// value is the key itself, or the absolute path of its file, which is returned.
func readKey(p *Problems, read readFunc, name string, value *Secret) (file string) {
	text := strings.Trim(keyLineEnds.Replace(value.Reveal()), "\"' \t\n") // docker --env-file keeps quotation marks
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

// reason returns a file system error without the path, which may be a key by mistake.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return err.Error()
}

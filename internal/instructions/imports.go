package instructions

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// importForm matches everything that the CLI (2.1.329) may treat as an import after an @. White space is JavaScript's.
// Absolute paths and those of the home lead outside the repository.
var importForm = regexp.MustCompile(`^[a-zA-Z0-9._-](?:[^\s\v\p{Z}\x{feff}\\]|\\ )*`)

// maxImport is the length of the longest path of an import, in bytes.
const maxImport = 1000

// imports returns the files that a text imports with @path, each once, if they exist. Of several readings of a path the
// longest counts: punctuation after it may belong to the sentence. The CLI ignores imports in code, but Markdown
// parsers disagree about where code begins and ends, and a file of the commit too many does no harm.
func (c *collector) imports(name, text string) (files []string) {
	known := map[string]bool{name: true}
	for at := strings.IndexByte(text, '@'); at >= 0; {
		rest := text[at+1:]
		// The CLI requires white space or punctuation before the @. An address has a letter or a digit there.
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			written := importForm.FindString(rest[:min(len(rest), maxImport)])
			token := strings.ReplaceAll(written, `\ `, " ")
			for _, end := range ends(token) {
				if c.looked += end; c.looked > maxLooked {
					c.note("Not all that %s imports is there: the instructions have too many paths after an @.", name)
					return files
				}
				file := path.Join(path.Dir(name), token[:end])
				if !c.files[file] {
					continue
				}
				if !known[file] {
					known[file] = true
					files = append(files, file)
				}
				break
			}
		}
		text = rest
		at = strings.IndexByte(text, '@')
	}
	return files
}

// ends returns the possible ends of an import's path, the longest first: its full length, or before a punctuation mark
// that Markdown or the sentence may need.
func ends(token string) (all []int) {
	token, _, _ = strings.Cut(token, "#")
	for end := len(token); end > 0; end-- {
		if end == len(token) || strings.IndexByte("*_~|()[]{}<>\"'`!,;:=&\\@?.", token[end]) >= 0 {
			all = append(all, end)
		}
	}
	return all
}

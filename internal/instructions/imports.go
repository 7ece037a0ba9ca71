package instructions

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// importForm matches everything that the CLI (2.1.329) may treat as an import after an @. White space is JavaScript's.
// Absolute paths and those of the home lead outside the repository.
var importForm = regexp.MustCompile(`^[a-zA-Z0-9._-](?:[^\s\v\p{Z}\x{feff}\\]|\\ )*`)

// maxImport is the length of the longest path of an import, in bytes.
const maxImport = 1000

// look finds the files that texts import with @path, each once, if they exist. Of several readings of a path the
// longest counts: punctuation after it may belong to the sentence. The CLI ignores imports in code, but Markdown
// parsers disagree about where code begins and ends, and a file of the commit too many does no harm.
func (c *collector) look(names []string, blobs []Blob) error {
	var unknown []string
	mentions := map[string][][]string{}
	for i, name := range names {
		if _, done := c.imports[name]; done {
			continue
		}
		mentions[name] = c.mentions(name, blobs[i].Content)
		for _, file := range slices.Concat(mentions[name]...) {
			if _, known := c.files[file]; !known {
				c.files[file] = false
				unknown = append(unknown, file)
			}
		}
	}
	found, err := c.read(unknown, -1)
	for i, b := range found {
		c.files[unknown[i]] = b.Size >= 0 || b.Unread
	}
	for name, readings := range mentions {
		c.imports[name] = nil
		for _, files := range readings {
			at := slices.IndexFunc(files, func(file string) bool { return c.files[file] })
			if at >= 0 && files[at] != name && !slices.Contains(c.imports[name], files[at]) {
				c.imports[name] = append(c.imports[name], files[at])
			}
		}
	}
	return err
}

// mentions returns the files that each @path in a text may mean, the longest path first.
func (c *collector) mentions(name, text string) (all [][]string) {
	for at := strings.IndexByte(text, '@'); at >= 0; {
		rest := text[at+1:]
		// The CLI requires white space or punctuation before the @. An address has a letter or a digit there.
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			written := importForm.FindString(rest[:min(len(rest), maxImport)])
			token := strings.ReplaceAll(written, `\ `, " ")
			var files []string
			for _, end := range ends(token) {
				file := path.Join(path.Dir(name), token[:end])
				if c.looked += len(file) + perPath; c.looked > maxLooked {
					c.note("Not all that %s imports is there: the instructions have too many paths after an @.", name)
					return all
				}
				if !strings.HasPrefix(file+"/", "../") && !strings.Contains(file, "\x00") {
					files = append(files, file)
				}
			}
			all = append(all, files)
		}
		text = rest
		at = strings.IndexByte(text, '@')
	}
	return all
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

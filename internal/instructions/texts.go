package instructions

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// memory adds files that are about their directories, and what they import.
func (c *collector) memory(names []string) error {
	blobs, err := c.read(names, maxRead)
	if err == nil {
		err = c.look(names, blobs)
	}
	if err != nil {
		return err
	}
	for i, name := range names {
		var paths []string
		if dir := directory(name); dir != "" {
			paths = []string{dir + "/**"}
		}
		if err := c.add(name, blobs[i], paths, 0); err != nil {
			return err
		}
	}
	return nil
}

// rules adds rules, which name the files that they are about.
func (c *collector) rules(names []string) error {
	blobs, err := c.read(names, maxRead)
	if err != nil {
		return err
	}
	heads := make([]header, len(names))
	for i := range blobs {
		heads[i], blobs[i].Content = frontmatter(tidy(blobs[i].Content))
	}
	if err := c.look(names, blobs); err != nil {
		return err
	}
	for i, name := range names {
		dir := directory(name)
		var paths []string
		for _, p := range heads[i].list("paths") {
			if len(paths) > maxPaths { // a few bytes more could be many patterns
				break
			}
			paths = append(paths, alternatives(path.Join(dir, p))...)
		}
		if slices.ContainsFunc(paths, func(p string) bool { return len(p) > maxPath }) {
			c.note("%s is left out: it has a pattern of paths with more than %d bytes.", name, maxPath)
			continue
		}
		if len(paths) > maxPaths {
			c.note("%s has more than %d patterns of paths, and is about the first ones only.", name, maxPaths)
			paths = paths[:maxPaths]
		}
		if len(paths) == 0 && dir != "" {
			paths = []string{dir + "/**"}
		}
		if err := c.add(name, blobs[i], paths, 0); err != nil {
			return err
		}
	}
	return nil
}

// add adds a text, unless it is there, and the files that it imports. These are about the same files.
func (c *collector) add(name string, b Blob, paths []string, depth int) error {
	about := name + "\x00" + strings.Join(paths, "\x00")
	if c.seen[name+"\x00"] || c.seen[about] {
		return nil
	}
	text := tidy(b.Content)
	used, most := &c.always, maxAlways
	if len(paths) > 0 {
		used, most = &c.later, maxLater
	}
	switch {
	case b.Size < 0:
		c.note("%s is left out: it is no file of the repository, or a link out of it.", name)
		return nil
	case b.Size > maxRead:
		c.note("%s is left out: it has %d KiB, and at most %d are read.", name, b.Size>>10, maxRead>>10)
		return nil
	case b.Unread:
		c.note("%s is left out: the instructions are too long together.", name)
		return nil
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		c.note("%s is left out: it is not text in UTF-8.", name)
		return nil
	case strings.TrimSpace(text) == "":
		return nil
	case c.patterns+len(paths) > maxRules:
		c.note("%s is left out: the instructions have more than %d patterns of paths.", name, maxRules)
		return nil
	case *used >= most || len(c.set.Texts) >= maxTexts:
		c.note("%s is left out: the instructions are too long together.", name)
		return nil
	}
	c.seen[about] = true
	c.patterns += len(paths)
	imported := c.imports[name]
	if room := min(MaxFile, most-*used); len(text) > room {
		c.note("%s is cut: it has %d KiB, and the agent gets the first %d.", name, len(text)>>10, room>>10)
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room] + "\n(The file is longer. Only its beginning is here.)\n"
	}
	*used += len(text)
	c.set.Texts = append(c.set.Texts, Text{Name: name, Paths: paths, Text: text})
	if depth == maxDepth && len(imported) > 0 {
		c.note("What %s imports is left out: only %d levels of imports are followed.", name, maxDepth)
		return nil
	}
	blobs, err := c.read(imported, maxRead)
	if err == nil {
		err = c.look(imported, blobs)
	}
	for i, file := range imported {
		if err == nil {
			err = c.add(file, blobs[i], paths, depth+1)
		}
	}
	return err
}

// directory returns the directory that a file of instructions is about; empty for the root.
func directory(name string) string {
	dir := path.Dir("/" + name)
	if i := strings.LastIndex(dir+"/", "/.claude/"); i >= 0 {
		dir = dir[:i]
	}
	return strings.TrimPrefix(dir, "/")
}

// alternatives expands the braces of a pattern as the CLI does: *.{go, mod} is *.go and *.mod, and braces within braces
// are not understood. It returns the first of them, at most one more than a rule may have.
func alternatives(pattern string) []string {
	all := []string{""}
	if len(pattern) > 1000 {
		return []string{pattern}
	}
	for {
		open := strings.IndexByte(pattern, '{')
		length := strings.IndexByte(pattern[max(open, 0):], '}')
		if open < 0 || length < 0 {
			break
		}
		var longer []string
		for _, start := range all {
			for one := range strings.SplitSeq(pattern[open+1:open+length], ",") {
				if len(longer) <= maxPaths {
					longer = append(longer, start+pattern[:open]+strings.TrimSpace(one))
				}
			}
		}
		all, pattern = longer, pattern[open+length+1:]
	}
	for i := range all {
		all[i] += pattern
	}
	return all
}

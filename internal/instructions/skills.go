package instructions

import (
	"path"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of the files of skills.
const (
	maxSkillFile  = 256 << 10 // bytes of one file
	maxSkills     = 4 << 20   // bytes of all
	maxSkillFiles = 300
)

// skills adds the files of skills, commands and agents under the names that they have in a plugin. Of several files
// with one name, whatever its case, the one nearest to the root counts.
func (c *collector) skills(names []string) error {
	if len(names) > maxSkillFiles {
		c.note("Of %d files of skills, commands and agents only the first %d are there.", len(names), maxSkillFiles)
		names = names[:maxSkillFiles]
	}
	c.room = maxSkills
	blobs, err := c.read(names, maxSkillFile)
	if err != nil {
		return err
	}
	total, known := 0, map[string]bool{} // false: a directory
	for i, name := range names {
		b := blobs[i]
		short := name[strings.LastIndex("/"+name, "/.claude/")+len(".claude/"):]
		kind, title := nameOf(short)
		switch {
		case b.Size < 0:
			c.note("%s is left out: it is no file of the repository, or a link out of it.", name)
		case !mayBeThere(short):
			c.note("%s is left out: only files that end in .md define commands and agents.", name)
		case known[strings.ToLower(short)]:
			c.note("%s is left out: another one has its name.", name)
		case collides(known, strings.ToLower(short)) || len(short) > 250:
			c.note("%s is left out: it has no place beside other files, or too long a name.", name)
		case b.Unread || b.Size > maxSkillFile || total+b.Size > maxSkills:
			c.note("%s is left out: it has %d KiB, too many for a file of a skill.", name, b.Size>>10)
		case kind != "" && !utf8.ValidString(b.Content):
			c.note("%s is left out: it is not text in UTF-8.", name)
		default:
			if kind != "" {
				b.Content = harmless(b.Content, title)
			}
			for at := strings.ToLower(short); at != "."; at = path.Dir(at) {
				known[at] = at == strings.ToLower(short)
			}
			total += b.Size
			c.set.Skills = append(c.set.Skills, File{short, b.Content})
		}
	}
	return nil
}

// nameOf returns the kind and the name of what a file of a plugin defines; empty if it is a further file of a skill.
// The CLI ignores the case of .md and of SKILL.md (2.1.329).
func nameOf(file string) (kind, name string) {
	top, rest, _ := strings.Cut(file, "/")
	dir, plain := path.Dir(rest), rest[:len(rest)-len(path.Ext(rest))]
	switch skill := strings.EqualFold(path.Base(rest), "SKILL.md"); {
	case skill && dir != "." && top != "agents": // also deeper ones, and those among the commands
		return "skill", strings.ReplaceAll(dir, "/", ":")
	case top == "commands":
		return "command", strings.ReplaceAll(plain, "/", ":")
	case top == "agents":
		return "agent", path.Base(plain)
	}
	return "", ""
}

// collides reports whether a file would be in place of a directory, or below a file.
func collides(known map[string]bool, file string) bool {
	_, found := known[file]
	for at := path.Dir(file); at != "."; at = path.Dir(at) {
		found = found || known[at]
	}
	return found
}

// mayBeThere reports whether a file has a place in a plugin. Only skills have further files.
func mayBeThere(file string) bool {
	return strings.HasPrefix(file, "skills/") || strings.EqualFold(path.Ext(file), ".md")
}

// described lists what the head of a skill, command or agent may say: what it is for and when it is offered. Everything
// else, such as hooks, servers and permissions, would make something run.
var described = []string{
	"name", "description", "when_to_use", "argument-hint", "disable-model-invocation", "user-invocable", "tools",
}

// apart returns a text without the marks that make the CLI run something. It only adds: what it removed could build
// another mark.
func apart(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "```!", "``` !"), "!`", "! `")
}

// harmless returns the text of a skill, command or agent without what the CLI would execute or obey by itself. It has
// the name of its file if it names itself nothing: the CLI finds a skill of a plugin without the plugin's name only by
// that (2.1.329). The text always has a head, because the CLI would take another one that it goes on with.
func harmless(text, name string) string {
	head, body := frontmatter(tidy(text))
	// The CLI runs !`command` and blocks that begin with ```! before the model sees the text (2.1.329). As text they
	// are read like any other code.
	kept := map[string]any{"name": apart(name)}
	for _, key := range described {
		switch v := head[key].(type) {
		case string:
			kept[key] = apart(v)
		case bool:
			kept[key] = v
		case []any:
			if key == "tools" {
				kept[key] = apart(strings.Join(head.list(key), ", "))
			}
		}
	}
	out, _ := yaml.Marshal(kept)
	return "---\n" + string(out) + "---\n" + apart(body)
}

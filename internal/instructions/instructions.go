// Package instructions selects what the files of a commit tell an agent: the texts that the CLI would load from a
// project (CLAUDE.md with what it imports, AGENTS.md, rules), and the texts of skills, commands and agents.
//
// [Collect] reads them and returns a [Set], which is bounded and holds nothing that the CLI executes: whoever hands it
// over hands over words. The package knows git and the CLI only by the names and the form of files. Its functions may
// be called from any goroutine.
package instructions

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds. What exceeds them is cut or left out, and a note says so.
const (
	MaxFile   = 40 << 10  // bytes of one text; the CLI itself warns about longer ones
	maxAlways = 160 << 10 // bytes of all texts that every run gets
	maxLater  = 640 << 10 // bytes of all texts for some paths
	maxRead   = 1 << 20   // larger files are not read at all
	maxAll    = 32 << 20  // bytes of all files that are read for texts
	maxLooked = 4 << 20   // bytes of possible paths of imports that are looked for
	perPath   = 50        // bytes of one of them besides its length, as looking for it costs
	maxTexts  = 300
	maxPaths  = 100   // patterns of one rule
	maxRules  = 1_000 // patterns of all texts
	maxPath   = 200   // bytes of a pattern
	maxDepth  = 5     // imports of imports, as in the CLI
	maxNotes  = 10    // further ones are counted
)

// Set is what the files of a commit tell an agent.
type Set struct {
	Texts  []Text   // in the order in which the agent should read them
	Skills []File   // files below skills, commands and agents, as a plugin of the CLI has them
	Notes  []string // sentences about what was cut or left out
}

// Text is one text of instructions.
type Text struct {
	Name  string   // of its file, relative to the repository
	Paths []string // patterns of the files that it is about, as in a rule of errand; empty: it is about all
	Text  string
}

// File is a file of a skill, command or agent.
type File struct {
	Name, Content string
}

// Blob is the content of a file, whose links were followed within the commit. Size is -1 if there is no such file.
// Content is empty if Size is more than was asked for.
type Blob struct {
	Content string
	Size    int
	// Unread says that Content is empty because those before it left no room, or the file is a link that leads nowhere.
	Unread bool
}

// Reader returns the contents of several files at once: of those with at most most bytes, beginning with the first one,
// as many as have at most room bytes together.
type Reader = func(names []string, most, room int) ([]Blob, error)

// Names lists the texts and the skills, commands and agents for people.
func (s Set) Names() (names []string) {
	for _, t := range s.Texts {
		names = append(names, t.Name)
	}
	for _, f := range s.Skills {
		if kind, name := nameOf(f.Name); kind != "" {
			names = append(names, kind+" "+name)
		}
	}
	return names
}

// AtOnce returns s with the texts about wanted paths as texts about all, as many as there is room for beside those that
// every run gets. The others stay as they are.
func (s Set) AtOnce(wanted func(paths []string) bool) Set {
	room := maxAlways
	for _, t := range s.Texts {
		if len(t.Paths) == 0 {
			room -= len(t.Text)
		}
	}
	s.Texts = slices.Clone(s.Texts)
	for i, t := range s.Texts {
		if len(t.Paths) > 0 && len(t.Text) <= room && wanted(t.Paths) {
			s.Texts[i].Paths = nil
			room -= len(t.Text)
		}
	}
	return s
}

// Collect reads the instructions of a commit. The names are those of all its files that are Wanted, and may be more.
func Collect(names []string, read Reader) (Set, error) {
	c := collector{
		reader: read, room: maxAll, files: map[string]bool{}, imports: map[string][]string{}, seen: map[string]bool{},
	}
	for _, name := range names {
		c.files[name] = true
	}
	memory, rules, skills := c.sort(names)
	for _, load := range []func() error{
		func() error { return c.memory(memory) },
		func() error { return c.rules(rules) },
		func() error { return c.skills(skills) },
	} {
		if err := load(); err != nil {
			return Set{}, err
		}
	}
	slices.SortStableFunc(c.set.Texts, func(a, b Text) int {
		return cmp.Compare(min(len(a.Paths), 1), min(len(b.Paths), 1))
	})
	if n := c.unsaid; n > 0 {
		c.set.Notes = append(c.set.Notes, fmt.Sprintf("%d more files were cut or left out.", n))
	}
	return c.set, nil
}

// The names by which the CLI finds instructions.
var (
	memoryFile = regexp.MustCompile(`(?:^|/)(?:\.claude/CLAUDE|CLAUDE|CLAUDE\.local|AGENTS)\.md$`)
	ruleFile   = regexp.MustCompile(`(?:^|/)\.claude/rules/(?:[^/]+/)*[^/]+\.md$`)
	skillFile  = regexp.MustCompile(`(?:^|/)\.claude/((?:skills/[^/.][^/]*|commands|agents)(?:/[^/.][^/]*)+)$`)
)

// Wanted reports whether a file of this name can have instructions that are loaded by name. Directories above may be
// links; what is below them counts under the link's name.
func Wanted(name string) bool {
	return memoryFile.MatchString(name) || strings.Contains("/"+name+"/", "/.claude/")
}

// sort returns the files of each kind, those of the root first.
func (c *collector) sort(names []string) (memory, rules, skills []string) {
	for _, name := range names {
		top, inside := strings.CutSuffix(path.Dir("/"+name), "/.claude")
		beside := strings.TrimPrefix(strings.TrimSuffix(top, "/")+"/", "/")
		switch {
		case strings.ContainsAny(name, "\n\x00") || !Wanted(name):
		case ruleFile.MatchString(name):
			rules = append(rules, name)
		case skillFile.MatchString(name):
			skills = append(skills, name)
		case !memoryFile.MatchString(name) || strings.Contains(top+"/", "/.claude/"):
		case inside && path.Base(name) != "CLAUDE.md": // not read by the CLI
		case path.Base(name) == "AGENTS.md" && (c.files[beside+"CLAUDE.md"] || c.files[beside+".claude/CLAUDE.md"]):
		default:
			memory = append(memory, name)
		}
	}
	for _, list := range [][]string{memory, rules, skills} {
		slices.SortFunc(list, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
		})
	}
	return memory, rules, skills
}

package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode"
)

// describeWidth is how many characters of an action people are shown: a line of a status message.
const describeWidth = 80

// describe puts a tool call into words, such as "Reading agent/run.go": one line, without secrets. Paths are relative to dir.
func describe(redact *Redactor, dir, name string, input json.RawMessage) string {
	t, ok := catalog[name]
	if !ok {
		return clip(legible(redact, "Using "+strings.ReplaceAll(strings.TrimPrefix(name, "mcp__"), "__", " ")), describeWidth)
	}
	what := t.subject(input)
	if strings.HasSuffix(t.arg, "path") && filepath.IsAbs(what) {
		what = relative(what, dir)
	}
	return clip(legible(redact, t.verb+" "+what), describeWidth)
}

// legible makes one line of s, without what a terminal or a chat would obey and without secrets. Those are looked for twice: before,
// since one may hold line breaks, and after, since one may have been written with something invisible in between.
func legible(redact *Redactor, s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return -1
		}
		return r
	}, redact.String(s))
	return redact.String(strings.Join(strings.Fields(s), " "))
}

// clip shortens s to at most n characters. It looks no farther than that.
func clip(s string, n int) string {
	end := 0
	for i := range s {
		switch n--; n {
		case 0:
			end = i
		case -1:
			return s[:end] + "…"
		}
	}
	return s
}

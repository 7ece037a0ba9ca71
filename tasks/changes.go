package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/workspace"
)

// Changes are the files that a run has changed, or the change that it reviews, at one moment. They are untrusted: an
// agent or a stranger wrote names and content.
type Changes struct {
	At     time.Time     `json:"at"`
	Base   string        `json:"base"`             // the commit that the files are compared with
	Head   string        `json:"head,omitempty"`   // of the reviewed change; empty for the run's own changes
	Live   bool          `json:"live,omitempty"`   // the run continued afterwards
	Total  Diffstat      `json:"total"`            // of all files
	Files  []ChangedFile `json:"files,omitempty"`  // the first ones, in the order of their names
	Left   []string      `json:"left,omitempty"`   // files that were not compared: too large, or neither file nor link
	Failed string        `json:"failed,omitempty"` // a sentence: why there is no comparison
}

// ChangedFile is the change of one file.
type ChangedFile struct {
	workspace.FileChange
	Secret bool // lines of Patch were redacted
}

// Diffstat counts changes.
type Diffstat struct {
	Files   int `json:"files"`
	Added   int `json:"added"` // lines
	Removed int `json:"removed"`
}

// String formats the counts for people, such as "3 files, +40 −12"; empty if nothing has changed.
func (d Diffstat) String() string {
	switch d.Files {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 file, +%d −%d", d.Added, d.Removed)
	}
	return fmt.Sprintf("%d files, +%d −%d", d.Files, d.Added, d.Removed)
}

// Bounds of stored changes.
const (
	DiffLimit    = 4 << 20   // bytes to ask a workspace for, of which the smallest patches are stored
	maxDiff      = 1 << 20   // bytes of all stored patches
	maxFilePatch = 128 << 10 // bytes of one
	maxDiffFiles = 300
)

// NewChanges redacts a comparison and brings it into bounds. Totals count everything.
func NewChanges(found workspace.Comparison, redact func(string) string) Changes {
	c := Changes{At: time.Now(), Base: found.Base, Total: Diffstat{Files: len(found.Files) + len(found.Left)}}
	for _, name := range found.Left {
		c.Left = append(c.Left, redact(name))
	}
	left := maxDiff
	for i, f := range found.Files {
		c.Total.Added += f.Added
		c.Total.Removed += f.Removed
		if i >= maxDiffFiles {
			continue
		}
		secret := false
		f.Name, f.From = redact(strings.ToValidUTF8(f.Name, "\uFFFD")), redact(strings.ToValidUTF8(f.From, "\uFFFD"))
		f.Patch, secret = redactPatch(f.Patch, redact) // before it is cut, which could cut a secret in two
		if most := min(maxFilePatch, left); len(f.Patch) > most {
			f.Patch, f.Cut = f.Patch[:strings.LastIndexByte(f.Patch[:most], '\n')+1], true
		}
		left -= len(f.Patch)
		c.Files = append(c.Files, ChangedFile{f, secret})
	}
	return c
}

// hidden replaces a line of a secret.
const hidden = "[redacted]"

// redactPatch removes secrets from a patch and keeps its lines. The signs at the beginning of the lines would keep a
// redactor from recognizing a key of several lines.
func redactPatch(patch string, redact func(string) string) (clean string, changed bool) {
	lines := strings.Split(strings.TrimSuffix(patch, "\n"), "\n")
	content := func() string {
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(l[min(1, len(l)):] + "\n")
		}
		return b.String()
	}
	if all := content(); redact(all) == all && redact(patch) == patch {
		return patch, false
	}
	key := false
	for i, l := range lines {
		begins, ends := strings.Contains(l, "PRIVATE KEY"), strings.Contains(l, "-----END")
		if key = key || begins; key && l != "" && !begins {
			lines[i] = l[:1] + hidden
		} else {
			lines[i] = redact(l)
		}
		key = key && !ends && !strings.HasPrefix(l, "@@ ")
	}
	if all := content(); redact(all) != all { // a secret that no single line shows
		for i, l := range lines {
			if l != "" && strings.ContainsAny(l[:1], "+- ") {
				lines[i] = l[:1] + hidden
			}
		}
	}
	return strings.Join(lines, "\n") + "\n", true
}

// Encode returns the changes as the store keeps them.
func (c Changes) Encode() []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(c) // plain data, and a buffer takes everything
	return out.Bytes()
}

// Missing returns how many changed files are counted and not listed.
func (c Changes) Missing() int { return max(0, c.Total.Files-len(c.Files)-len(c.Left)) }

// Patch returns the changes as one unified diff. It begins with a line for people if something is missing, which
// programs ignore.
func (c Changes) Patch() string {
	var b strings.Builder
	incomplete := func(f ChangedFile) bool { return f.Cut || f.Secret }
	if slices.ContainsFunc(c.Files, incomplete) || c.Missing()+len(c.Left) > 0 {
		b.WriteString("# This diff is incomplete: large files are cut or left out, and secrets are redacted.\n")
	}
	for _, f := range c.Files {
		b.WriteString(f.Patch)
	}
	return b.String()
}

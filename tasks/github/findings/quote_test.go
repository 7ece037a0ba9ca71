package findings

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// change is a generated change of one file, and what a reader of both versions sees in it.
type change struct {
	path, was string // in the new and in the old version
	old, now  string
	kind      string
	patch     string
}

// hunks returns the first and the last line of each hunk on a side, by its header alone.
func (c change) hunks(s Side) (all [][2]int) {
	for l := range strings.SplitSeq(c.patch, "\n") {
		m := hunkForm.FindStringSubmatch(l)
		if m == nil {
			continue // an added line does not begin like a header
		}
		first, n := m[3], m[4]
		if s == Left {
			first, n = m[1], m[2]
		}
		from, _ := strconv.Atoi(first)
		length := 1
		if n != "" {
			length, _ = strconv.Atoi(n)
		}
		all = append(all, [2]int{from, from + length - 1})
	}
	return all
}

// text returns the lines of a version.
func (c change) text(s Side) []string {
	if s == Left {
		return strings.Split(c.old, "\n")
	}
	return strings.Split(c.now, "\n")
}

// kindsOfChange are those that git shows in different ways.
var kindsOfChange = []string{
	"edit", "edit", "rename", "crlf", "no newline", "tabs", "moved block", "huge", "binary", "mode", "submodule",
	"new", "deleted", "long line", "too large", "to crlf",
}

// version returns a file of n lines, of which many look the same.
func version(r *rand.Rand, i, n int) []string {
	lines := []string{fmt.Sprintf("// file %d begins", i)}
	for len(lines) < n {
		lines = append(lines, []string{
			"}", "", "\treturn err", "return err", "  if err != nil {", "\t\tx++", "--- a/x", "+++ b/x", " ", "-- dash",
			fmt.Sprintf("\tcall(%d, %d)", r.IntN(9), i), fmt.Sprintf("total%d := sum%d + %d", i, len(lines), r.IntN(1000)),
		}[r.IntN(12)])
	}
	return lines
}

// edited returns lines with some changes.
func edited(r *rand.Rand, lines []string) []string {
	lines = slices.Clone(lines)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(lines))
		switch r.IntN(3) {
		case 0:
			lines[at] = fmt.Sprintf("changed %d", r.IntN(100))
		case 1:
			lines = slices.Insert(lines, at, "", fmt.Sprintf("\tadded(%d)", r.IntN(5)), "}")
		default:
			lines = slices.Delete(lines, at, min(len(lines)-1, at+1+r.IntN(2)))
		}
	}
	return lines
}

func newChange(r *rand.Rand, i int) change {
	c := change{kind: kindsOfChange[i%len(kindsOfChange)], path: fmt.Sprintf("d%d/file.go", i), was: fmt.Sprintf("d%d/file.go", i)}
	n := 9 + r.IntN(60)
	if c.kind == "huge" {
		n = 4000
	}
	old := version(r, i, n)
	if c.kind == "long line" {
		old[1] = strings.Repeat(fmt.Sprintf("minified%d;", i), 400)
	}
	now := edited(r, old)
	end := "\n"
	switch c.kind {
	case "rename":
		c.path = fmt.Sprintf("d%d/other name.go", i)
		now = slices.Concat(old, []string{"the end"})
	case "crlf":
		old, now = strings.Split(strings.Join(old, "\r\n")+"\r", "\n"), strings.Split(strings.Join(now, "\r\n")+"\r", "\n")
	case "to crlf":
		now = strings.Split(strings.Join(old, "\r\n")+"\r", "\n")
	case "no newline":
		end = ""
	case "tabs":
		for at := range now {
			now[at] = strings.ReplaceAll(now[at], "\t", "    ")
		}
	case "moved block":
		half := len(old) / 2
		now = slices.Concat(old[half:], old[:half])
	case "mode":
		now = old
	case "new":
		old = nil
	case "deleted":
		now = nil
	}
	c.old, c.now = strings.Join(old, "\n")+end, strings.Join(now, "\n")+end
	if c.kind == "binary" {
		c.old, c.now = c.old+"\x00", c.now+"\x00"
	}
	return c
}

// repositoryOf commits both versions of all changes, and returns what git shows of each path.
func repositoryOf(t *testing.T, all []change) map[string]string {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	write := func(path, text string, mode os.FileMode) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	commit := func(link string) {
		git("add", "-A")
		for _, c := range all {
			if c.kind == "submodule" {
				git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat(link, 40)+","+c.path)
			}
		}
		git("commit", "-q", "-m", "x")
	}
	for _, c := range all {
		if c.kind != "new" && c.kind != "submodule" {
			write(c.was, c.old, 0o600)
		}
	}
	commit("1")
	for _, c := range all {
		if c.kind == "submodule" {
			continue
		}
		if c.kind == "rename" || c.kind == "deleted" || c.kind == "mode" {
			if err := os.Remove(filepath.Join(dir, c.was)); err != nil {
				t.Fatal(err)
			}
		}
		mode := os.FileMode(0o600)
		if c.kind == "mode" {
			mode = 0o700
		}
		if c.kind != "deleted" {
			write(c.path, c.now, mode)
		}
	}
	commit("2")
	patches := map[string]string{}
	for _, one := range strings.Split("\n"+git("-c", "core.quotePath=false", "diff", "-M80%", "HEAD^", "HEAD"), "\ndiff --git ")[1:] {
		header, hunks, _ := strings.Cut(one, "\n@@ ")
		_, path, _ := strings.Cut(strings.SplitN(header, "\n", 2)[0], " b/")
		if patches[path] = ""; hunks != "" {
			patches[path] = strings.TrimSuffix("@@ "+hunks, "\n")
		}
	}
	return patches
}

// claimed is a finding of a model that may be wrong, and where its quote really is.
func claimed(r *rand.Rand, c, other change) (f Finding, right bool) {
	side := []Side{Right, Right, Left}[r.IntN(3)]
	text := c.text(side)
	at := 1 + r.IntN(len(text))
	if all := c.hunks(side); len(all) > 0 && r.IntN(4) > 0 { // most findings are in what has changed
		h := all[r.IntN(len(all))]
		at = min(h[0]+r.IntN(max(1, h[1]-h[0]+1)), len(text))
	}
	at = max(at, 1)
	first := at
	if r.IntN(3) == 0 {
		first = max(1, at-r.IntN(4))
	}
	quote := text[first-1 : at]
	f = Finding{
		ID: "f", Severity: Major, Confidence: High, Claim: "x", Path: c.path, Side: side, Line: at,
		Original: trimLines(strings.Join(quote, "\n")),
	}
	if first < at {
		f.StartLine = first
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		return f, true
	case 3, 4:
		f.Line += 1 + r.IntN(5)
	case 5:
		f.Line = max(1, f.Line-1-r.IntN(60))
	case 6:
		f.Path = other.path
	case 7:
		f.Side = map[Side]Side{Left: Right, Right: Left}[f.Side]
	case 8:
		f.Line = 100_000 + r.IntN(9)
	case 9:
		f.Original = []string{"", "  ", "}", "return err", "nothing like it", "if err != nil {"}[r.IntN(6)]
	}
	f.StartLine = 0
	return f, false
}

// stands checks a posted finding against both versions of its file: GitHub accepts its lines, and it quotes all of them.
// What is quoted above and below them agrees, too, as far as the hunk shows it.
func stands(c change, f Finding) error {
	text, first := c.text(f.Side), f.Line
	if f.StartLine > 0 {
		first = f.StartLine
	}
	hunks := c.hunks(f.Side)
	in := slices.IndexFunc(hunks, func(h [2]int) bool { return h[0] <= first && f.Line <= h[1] })
	if first > f.Line || f.Line > len(text) || in < 0 {
		return fmt.Errorf("lines %d-%d are not inside a hunk", first, f.Line)
	}
	same := func(a, b string) bool {
		a, b = strings.TrimSpace(a), strings.TrimSpace(b)
		return a == b || len(a) >= 200 && len(b) >= 200 && a[:200] == b[:200]
	}
	quote := strings.Split(f.Original, "\n")
	begins := slices.IndexFunc(quote, func(q string) bool { return strings.TrimSpace(q) != "" }) // any line may be above it
	for last := range quote {
		below := strings.TrimSpace(strings.Join(quote[last+1:], ""))
		fits := last >= max(begins, f.Line-first) && (below == "" || f.Line == hunks[in][1])
		for back := 0; back <= last && f.Line-back >= hunks[in][0]; back++ {
			fits = fits && (last-back < begins || same(quote[last-back], text[f.Line-back-1]))
		}
		if fits {
			return nil
		}
	}
	return fmt.Errorf("line %d is %q", f.Line, text[f.Line-1])
}

// Whatever lines a model names, a finding stands only at a line whose text it quotes, and none is lost.
func TestFindingsStandAtWhatTheyQuote(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(42, 300))
	all := make([]change, 300)
	for i := range all {
		all[i] = newChange(r, i)
	}
	patches := repositoryOf(t, all)
	d, byPath := Diff{}, map[string]change{}
	for i := range all {
		c := &all[i]
		patch, shown := patches[c.path]
		if !shown {
			t.Fatalf("git shows no %s change of %s", c.kind, c.path)
		}
		if c.patch = patch; c.kind == "too large" {
			c.patch = "" // as GitHub leaves it out
		}
		if c.kind == "submodule" {
			c.old, c.now = "Subproject commit "+strings.Repeat("1", 40), "Subproject commit "+strings.Repeat("2", 40)
		}
		d[c.path], byPath[c.path] = ParsePatch(c.patch), *c
	}
	kept, moved, summarised := 0, 0, 0
	for i, c := range all {
		for range 20 {
			f, right := claimed(r, c, all[(i+1)%len(all)])
			got := Plan{Inline: []Finding{f}}.Place(d, Limits{Max: 6, Floor: Minor})
			if len(got.Inline)+len(got.Summary) != 1 {
				t.Fatalf("%s, %+v: lost", c.kind, f)
			}
			if len(got.Inline) == 0 {
				inside := slices.ContainsFunc(c.hunks(f.Side), func(h [2]int) bool { return h[0] <= f.Line && f.Line <= h[1] })
				if right && inside && recognised(c.text(f.Side)[f.Line-1]) != "" {
					t.Errorf("%s: right and not on its line: %+v", c.kind, f)
				}
				summarised++
				continue
			}
			at := got.Inline[0]
			if err := stands(byPath[at.Path], at); err != nil {
				t.Errorf("%s: %v, but the finding quotes %q (line %d)", c.kind, err, f.Original, f.Line)
			}
			if at.Line == f.Line && at.Side == f.Side {
				kept++
			} else {
				moved++
			}
		}
	}
	if kept < 1000 || moved < 300 || summarised < 1000 {
		t.Errorf("%d stay, %d are moved, %d are in the summary: too few to show anything", kept, moved, summarised)
	}
}

// A large diff with many findings is placed fast enough: each finding looks at each line once.
func BenchmarkPlace(b *testing.B) {
	var patch bytes.Buffer
	patch.WriteString("@@ -0,0 +1,50000 @@")
	for i := range 50_000 {
		fmt.Fprintf(&patch, "\n+\tline(%d)", i)
	}
	d, p := Diff{"a.go": ParsePatch(patch.String())}, Plan{}
	for i := range maxFindings {
		p.Inline = append(p.Inline, Finding{Severity: Major, Path: "a.go", Line: i + 9, Original: "\tline(49000)"})
	}
	for b.Loop() {
		p.Place(d, Limits{Max: 6, Floor: Minor})
	}
}

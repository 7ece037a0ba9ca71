package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestLinesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10) // more than the reader's buffer
	l := newLines(strings.NewReader("a\n\n" + long + "\nlast"))
	var got []string
	for {
		piece, cut, more, err := l.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		if cut || more {
			t.Error("a line within the limit was cut")
		}
		got = append(got, string(piece))
	}
	if diff := cmp.Diff([]string{"a", "", long, "last"}, got); diff != "" {
		t.Error(diff)
	}
}

// A line beyond the limit comes in fragments that are marked, and the line after it is whole again.
func TestLinesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	const size = maxLine + 1000
	l := newLines(io.MultiReader(io.LimitReader(endless{}, size), strings.NewReader("\nnext\n")))
	var total int
	for {
		piece, cut, more, err := l.Next()
		if err != nil || !cut {
			t.Fatalf("cut %v, err %v", cut, err)
		}
		total += len(piece)
		if len(piece) > maxLine+64<<10 {
			t.Errorf("a piece of %d bytes", len(piece))
		}
		if !more {
			break
		}
	}
	if total != size {
		t.Errorf("%d bytes of %d", total, size)
	}
	if piece, cut, _, err := l.Next(); string(piece) != "next" || cut || err != nil {
		t.Errorf("next line %q, cut %v, %v", piece, cut, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestDecodeIsTolerant(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"type":"system","subtype":"init","brand_new":{"deep":[1]}}`:              "system/init",
		`{"subtype":"success","type":"result","num_turns":2.0}`:                    "result/success",
		`{"type":"assistant","message":{"content":"bare text"}}`:                   "assistant/",
		`{"type":"assistant","message":{"content":{"odd":1}}}`:                     "assistant/",
		`{"type":"system","subtype":"api_retry","error":{"now":"an object"}}`:      "system/api_retry odd",
		`{"type":"x","type":"y"}`:                                                  "y/",
		"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}": "user/",
		`not json`:         "",
		`["type"]`:         "",
		`{"no":"type"}`:    "",
		`{"type":"result"`: "",
		``:                 "",
	} {
		l, ok := decode([]byte(line))
		got := l.Type + "/" + l.Subtype
		if l.odd {
			got += " odd"
		}
		if l.IsError {
			got += " error"
		}
		if l.Result != "" {
			got += " " + l.Result
		}
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("decode(%s) = %q, want %q", line, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"image"}]}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, ok := decode(line)
		if ok && l.Type == "" {
			t.Error("decoded without a type")
		}
	})
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, input, want string }{
		{"Read", `{"file_path":"/w/agent/run.go"}`, "Reading agent/run.go"},
		{"Read", `{"file_path":"/etc/passwd"}`, "Reading /etc/passwd"},
		{"Bash", `{"command":"go test\n  ./..."}`, "Running go test ./..."},
		{"Bash", `{"command":"` + strings.Repeat("x", 200) + `"}`, "Running " + strings.Repeat("x", 71) + "…"},
		{"Grep", `{}`, "Searching for "},
		{"mcp__tracker__find_issue", `{}`, "Using tracker find_issue"},
		{"Novelty", `not json`, "Using Novelty"},
	} {
		if got := describe("/w", c.tool, []byte(c.input)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.tool, c.input, got, c.want)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	file := func(path string) string { return `{"file_path":"` + path + `"}` }
	for _, c := range []struct {
		profile     Profile
		tool, input string
		want        bool
	}{
		{Write, "Write", file(dir + "/a/b/c.txt"), true},
		{Write, "Edit", file("relative.txt"), true},
		{Write, "Write", file(outside + "/x"), false},
		{Write, "Write", file(dir + "/../x"), false},
		{Write, "Write", file(dir + "/link/x"), false},
		{Write, "NotebookEdit", `{"notebook_path":"` + outside + `/x.ipynb"}`, false},
		{Write, "Bash", `{"command":"ls /"}`, true},
		{Write, "WebFetch", `{"url":"https://example.org"}`, true},
		{Read, "Read", file(dir + "/x"), true},
		{Read, "Read", file(outside + "/x"), false},
		{Read, "Grep", `{"pattern":"x","path":"` + outside + `"}`, false},
		{Read, "Grep", `{"pattern":"x"}`, true},
		{Read, "Grep", `{"pattern":"/etc/.*"}`, true},
		{Read, "Grep", `{"pattern":"x","glob":"/etc/*"}`, false},
		{Read, "Glob", `{"pattern":"**/*.go"}`, true},
		{Read, "Glob", `{"pattern":"` + dir + `/**"}`, true},
		{Read, "Glob", `{"pattern":"` + outside + `/*"}`, false},
		{Read, "Glob", `{"pattern":"/{etc,proc}/*"}`, false},
		{Read, "Glob", `{"pattern":"*/../../*"}`, false},
		{Read, "Glob", `{"pattern":"*","path":"` + outside + `"}`, false},
		{Read, "Write", file(dir + "/x"), false},
		{Read, "Bash", `{"command":"ls"}`, false},
		{Untrusted, "WebFetch", `{"url":"https://example.org"}`, false},
		{Untrusted, "mcp__x__y", `{}`, false},
	} {
		d := Policy{Profile: c.profile, Roots: []string{dir}}.Decide(ToolRequest{Tool: c.tool, Input: []byte(c.input)})
		if d.Allow != c.want || !d.Allow && d.Reason == "" {
			t.Errorf("%s %s %s: %+v", c.profile, c.tool, c.input, d)
		}
	}
	if d := (Policy{Profile: Write}).Decide(ToolRequest{Tool: "AskUserQuestion", Human: true}); d.Allow || d.Reason == "" {
		t.Errorf("a question to nobody: %+v", d)
	}
}

func TestFullDiskDoesNotStopALog(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	l, err := openLog(t.TempDir(), "x", nil, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// The same open file, by its number: first a full disk, then one with room.
	fd := int(l.rf.Fd())
	room, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(full.Fd()), fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	l.Raw([]byte("lost"), true)
	l.Flush()
	if err := unix.Dup3(room, fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(room)
	l.Raw([]byte("kept"), true)
	name := l.rf.Name()
	if err := l.Close(); err == nil {
		t.Error("the log does not say that something is missing")
	}
	if got, _ := os.ReadFile(name); string(got) != "kept\n" {
		t.Errorf("log = %q", got)
	}
}

func TestTailSaysWhenItWasCut(t *testing.T) {
	t.Parallel()
	var s tail
	for range tailLines + 5 {
		s.Add([]byte("line \xff" + strings.Repeat("y", 2*tailWidth)))
	}
	got := s.String()
	if !strings.HasPrefix(got, "[only the last 100 lines]\n") || strings.Count(got, "\n") != tailLines || len(got) > (tailLines+1)*(tailWidth+10) {
		t.Errorf("%d lines, %d bytes", strings.Count(got, "\n"), len(got))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(path string, mode os.FileMode) string {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pinned := file("checkout/node_modules/.bin/claude", 0o700)
	global := file("bin/claude", 0o700)
	plain := file("plain/claude", 0o600)
	path := filepath.Dir(plain) + ":relative:" + filepath.Dir(global)
	for _, c := range []struct{ explicit, dir, path, want string }{
		{"", filepath.Join(root, "checkout"), path, pinned},
		{"", filepath.Join(root, "checkout/deep/er"), path, pinned},
		{"", root, path, global},
		{global, filepath.Join(root, "checkout"), "", global},
		{plain, root, path, ""}, // named, but not executable: nothing else is taken instead
		{"", root, filepath.Dir(plain), ""},
	} {
		got, err := Find(c.explicit, c.dir, c.path)
		if e, ok := errors.AsType[*Error](err); got != c.want || (c.want == "") != ok || ok && e.Class != ClassCLIMissing {
			t.Errorf("Find(%q, %q, %q) = %q, %v; want %q", c.explicit, c.dir, c.path, got, err, c.want)
		}
	}
	if got, err := Find("", ".", ""); err != nil || !filepath.IsAbs(got) {
		t.Errorf("from here: %q, %v; want an absolute path (make setup)", got, err)
	}
}

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		var l wireLine
		ok := l.decode([]byte(line))
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

// Of what a tool put out, the beginning is decoded, whatever its shape.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"a \"text\"\n"`: "a \"text\"\n",
		`[{"type":"text","text":"one"},{"type":"image","source":{"data":"AAAA"}},{"type":"text","text":"two"}]`: "one\n[image]\ntwo",
		`[{"type":"text","text":"one"},7,{"type":"text","text":"two"}]`:                                         "one\n[]",
		`[]`: "", `{}`: "", `null`: "", `7`: "",
		`"` + strings.Repeat(`\u00e9`, 1<<20) + `"`: strings.Repeat("é", 2*maxPreview-1),
	} {
		line := `{"type":"user","message":{"content":[{"type":"tool_result","content":` + content + `,"tool_use_id":"t1"}]}}`
		var l wireLine
		ok := l.decode([]byte(line))
		if !ok || l.odd || l.Message.Content[0].ToolUseID != "t1" {
			t.Errorf("%.100s: decoded as %+v", content, l)
			continue
		}
		got := string(l.Message.Content[0].Content)
		if got != want {
			t.Errorf("%.100s: %d bytes %.100q, want %d bytes", content, len(got), got, len(want))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`))
	f.Add([]byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"image"}]}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var l wireLine
		ok := l.decode(line)
		if ok && l.Type == "" {
			t.Error("decoded without a type")
		}
		if l, ok := decodeHead(line[:len(line)/2]); ok && l.Type == "" {
			t.Error("the head was decoded without a type")
		}
	})
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
		} else if ok && strings.Contains(e.Message, "ERRAND_CLAUDE") {
			t.Errorf("%q: the remedy is the class's, and would be told twice", e.Message)
		}
	}
	if got, err := Find("", ".", ""); err != nil || !filepath.IsAbs(got) {
		t.Errorf("from here: %q, %v; want an absolute path (make setup)", got, err)
	}
}

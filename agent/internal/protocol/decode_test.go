package protocol

import (
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
		var l outputLine
		ok := l.decode([]byte(line))
		got := l.Type + "/" + l.Subtype
		if l.odd {
			got += " odd"
		}
		if l.IsError {
			got += " error"
		}
		if l.Text != "" {
			got += " " + l.Text
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
		line := `{"type":"user","message":{"content":[{"type":"tool_result","content":` + content +
			`,"tool_use_id":"t1"}]}}`
		var l outputLine
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
		var l outputLine
		ok := l.decode(line)
		if ok && l.Type == "" {
			t.Error("decoded without a type")
		}
		if l, ok := decodeHead(line[:len(line)/2]); ok && l.Type == "" {
			t.Error("the head was decoded without a type")
		}
	})
}

package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded are lines of the real CLI, and those in files that match the pattern in $AGENT_TEST_TRANSCRIPTS.
func recorded(tb testing.TB) (lines [][]byte) {
	tb.Helper()
	for _, pattern := range []string{"../../testdata/errors/*/*.ndjson", os.Getenv("AGENT_TEST_TRANSCRIPTS")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				tb.Fatal(err)
			}
			for line := range bytes.Lines(text) {
				lines = append(lines, bytes.TrimRight(line, "\r\n"))
			}
		}
	}
	if len(lines) == 0 {
		tb.Fatal("no recorded lines")
	}
	return lines
}

// checkSkim compares what skim reads with what decode reads.
func checkSkim(t *testing.T, k *skimmer, line []byte) (skimmed bool) {
	t.Helper()
	var got, want outputLine
	if skimmed = k.skim(line, &got); skimmed {
		if !want.decode(line) {
			t.Fatalf("skimmed what cannot be decoded: %.2000s", line)
		}
		if !json.Valid(line) {
			t.Fatalf("skimmed what is not JSON: %.2000s", line)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(outputLine{})); diff != "" {
			t.Fatalf("%.2000s\ndecode and skim differ: %s", line, diff)
		}
	}
	k.forget(&got)
	return skimmed
}

// The kinds of lines that are most of a session should be skimmed, and all lines should be read as decode reads them.
func TestSkimOfRecordedLines(t *testing.T) {
	t.Parallel()
	var k skimmer
	frequent, skimmed := 0, 0
	for _, line := range recorded(t) {
		var l outputLine
		l.decode(line)
		is := checkSkim(t, &k, line)
		switch {
		case l.Type == "stream_event", l.Type == "assistant" && l.Message.Model != "<synthetic>",
			l.Type == "user" && len(l.Message.Content) > 0 && l.Message.Content[0].Type == "tool_result":
			if frequent++; is {
				skimmed++
			} else {
				t.Logf("decoded: %.300s", line)
			}
		}
	}
	if frequent < 20 || skimmed != frequent {
		t.Errorf("skimmed %d of %d", skimmed, frequent)
	}
}

// values are of all kinds, some of them odd.
var values = []string{
	`"x"`, `null`, `true`, `false`, `0`, `-1.5e3`, `12`, `{}`, `[]`, `[{}]`, `[null]`, `["x"]`, `{"type":"x"}`,
	`{"type":1}`, `{"index":0.5}`,
	`"\u0041\ud83d\ude00\"\n"`, `"\ud800"`, "\"\xff\"", `[{"type":"text","text":"é"},{"type":"image"}]`,
	`"` + strings.Repeat("long ", 2000) + `"`,
	`{"type":"stream_event","event":{"type":"x"}}`, `01`, `"\x"`, "\"\n\"", `{"a":1,}`, `[1,]`, ` 1`, `1 `, `tru`, `1.`,
	`-`, `1e`, `"`, ``, `{"a" :1}`,
	strings.Repeat("[", 101) + strings.Repeat("]", 101), strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
}

// shapes are lines in which %s stands for members of an object, and the type of that object.
var shapes = map[string]reflect.Type{
	`{"type":"x",%s}`:                             reflect.TypeFor[outputLine](),
	`{"type":"x","event":{%s}}`:                   reflect.TypeFor[apiEvent](),
	`{"type":"x","event":{"delta":{%s}}}`:         reflect.TypeOf(apiEvent{}.Delta),
	`{"event":{"content_block":{%s}},"type":"x"}`: reflect.TypeOf(apiEvent{}.Block),
	`{"message":{%s},"type":"x"}`:                 reflect.TypeFor[apiMessage](),
	`{"type":"x","message":{"content":[{%s}]}}`:   reflect.TypeFor[contentBlock](),
}

// Every field of a line should be read by skim or left to decode, whatever its value.
func TestSkimKnowsAllFields(t *testing.T) {
	t.Parallel()
	var k skimmer
	for shape, object := range shapes {
		for _, f := range append(reflect.VisibleFields(object), reflect.StructField{Tag: `json:"other"`},
			reflect.StructField{Tag: `json:"\\u0074ype"`}) {
			name := f.Tag.Get("json")
			if name == "" {
				continue
			}
			for _, v := range values {
				for _, members := range []string{
					`"NAME":VALUE`, `"NAME":"x","NAME":VALUE`, `"NAME":VALUE,"NAME":"y"`,
					`"NAME":{"type":"a"},"NAME":VALUE`,
				} {
					members = strings.NewReplacer("NAME", name, "VALUE", v).Replace(members)
					checkSkim(t, &k, fmt.Appendf(nil, shape, members))
				}
			}
		}
	}
}

// Damaged lines should not be taken for whole ones.
func TestSkimOfDamagedLines(t *testing.T) {
	t.Parallel()
	var k skimmer
	random := rand.New(rand.NewPCG(1, 2))
	all := recorded(t)
	for range 20_000 {
		line := all[random.IntN(len(all))]
		if len(line) < 2 || len(line) > 5000 {
			continue
		}
		from := random.IntN(len(line))
		to := from + random.IntN(min(10, len(line)-from)+1)
		other := all[random.IntN(len(all))]
		checkSkim(t, &k, line[:from])
		checkSkim(t, &k, slices.Concat(line[:from], line[to:]))
		checkSkim(t, &k, slices.Concat(line[:from], []byte{byte(random.IntN(256))}, line[to:]))
		checkSkim(t, &k, slices.Concat(line[:from], other))
		checkSkim(t, &k, slices.Concat(line, other))
	}
}

func FuzzSkim(f *testing.F) {
	for _, line := range recorded(f) {
		if len(line) < 3000 {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) { checkSkim(t, &skimmer{}, line) })
}

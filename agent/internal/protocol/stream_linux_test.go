package protocol

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

// reading is a stream with a log, and what it reported.
type reading struct {
	*Stream
	log    string // path of the log for people
	events []Event
	asked  []string
	idle   func()
}

func (r *reading) Event(e Event)                       { r.events = append(r.events, e) }
func (r *reading) Idle()                               { r.idle() }
func (r *reading) Retry(string, int, int)              {}
func (r *reading) Used(float64, map[string]ModelUsage) {}
func (r *reading) Ask(id string, q *Request)           { r.asked = append(r.asked, id+" "+q.Subtype) }

const fakeKey = "MIIEpAIBAAKCAQEAwJ0Fq1oX3n5kT7uV2yZ8bC4dE6fG9hI0jK1lM2nO3pQ4rS5t"

func newReading(t testing.TB, r *redact.Redactor) *reading {
	t.Helper()
	r = r.ForRun()
	dir := agenttest.Memory(t)
	log, err := runlog.Open(dir, "x", nil, r, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	rd := &reading{log: filepath.Join(dir, "x.log"), idle: func() {}}
	rd.Stream = NewStream(Config{
		Redactor: r, Log: log, Control: NewControl(nil, func(error) {}), Handler: rd,
		Describe: func(tool string, input json.RawMessage) (string, bool) {
			return redact.Clip(r.OneLine(tool+" "+string(input)), 80), true
		},
	})
	rd.clock = Clock{}
	return rd
}

// readText reads a text that ends.
func (r *reading) readText(text string) {
	r.Read(strings.NewReader(text))
}

// logs closes the log, and returns it for people and raw.
func (r *reading) logs(t *testing.T) (people, raw string) {
	t.Helper()
	if err := r.Log.Close(); err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i, ext := range []string{".log", ".ndjson"} {
		text, err := os.ReadFile(strings.TrimSuffix(r.log, ".log") + ext)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1]
}

// said joins the texts of the events of a kind.
func (r *reading) said(k Kind) string {
	var b strings.Builder
	for _, e := range r.events {
		if e.Kind == k {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

func delta(kind, text string) string {
	return fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"%s_delta","%s":%q}}}`+"\n", kind, kind, text)
}

func input(text string) string {
	return fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":%q}}}`+"\n", text)
}

const blockStop = `{"type":"stream_event","event":{"type":"content_block_stop"}}` + "\n"

// A text may go on in the next message until one of these comes.
const (
	blockStart = `{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"text"}}}` + "\n"
	messageEnd = `{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"}}}` + "\n"
)

// A secret that comes in two pieces of a live answer is in none of them, and nothing else is lost.
func TestSecretsInPieces(t *testing.T) {
	t.Parallel()
	r := newReading(t, redact.New("a-known-secret"))
	r.Read(strings.NewReader(
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}` + "\n" +
			delta("thinking", "hm, a-kno") + delta("thinking", "wn-secret? a-kn") +
			delta("text", "own-secret? It is a-known-") + delta("text", "sec") +
			`{"type":"system","subtype":"compact_boundary"}` + "\n" + delta("text", "ret, or a-kn") + blockStop +
			blockStart + delta("text", "own-secret") + blockStop +
			`{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use","id":"t1","name":"Bash"}}}` + "\n" +
			input(`{"command":"a-known`) + input(`-secret a`) +
			`{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}` + "\n" + blockStop +
			delta("text", " xoxb-12") + delta("text", "345678") + delta("text", "9 a") +
			`{"type":"result","subtype":"success"}` + "\n" + delta("text", " a-k")))
	if got, want := r.said(ToolInput), `{"command":"[redacted] a`; got != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
	if end := slices.IndexFunc(r.events, func(e Event) bool { return e.Kind == TurnEnd }); r.events[end-1].Text != "a" {
		t.Errorf("%q came before the end of the turn", r.events[end-1].Text)
	}
	if last := slices.IndexFunc(r.events, func(e Event) bool {
		return e.Kind == ToolUse
	}); slices.ContainsFunc(r.events[last:], func(e Event) bool { return e.Kind == ToolInput }) {
		t.Error("a piece of the call came after the call")
	}
	if got, want := r.said(Thinking), "hm, [redacted]? a-kn"; got != want {
		t.Errorf("thought %q, want %q", got, want)
	}
	if got, want := r.said(Text), "own-secret? It is [redacted], or a-kn\n\nown-secret\n\n [redacted] a a-k"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// Blocks that arrive whole are apart in the log, and what may begin a secret at the end of one does not wait for the
// next, unless the maximum of tokens cut it.
func TestBlocksWithoutPieces(t *testing.T) {
	t.Parallel()
	r := newReading(t, redact.New("a-known-secret"))
	line := func(id, stop, block string) string {
		const form = `{"type":"assistant","message":{"id":%q,"stop_reason":%q,"content":[%s]}}` + "\n"
		return fmt.Sprintf(form, id, stop, block)
	}
	r.readText(line("m1", "", `{"type":"text","text":"First."}`) +
		line("m1", "", `{"type":"text","text":"Then a-k"}`) +
		line("m1", "", `{"type":"tool_use","id":"t1","name":"Bash","input":{}}`) +
		line("m2", "max_tokens", `{"type":"text","text":"At last a-known-"}`) +
		line("m3", "end_turn", `{"type":"text","text":"secret."}`) +
		`{"type":"result","subtype":"success"}` + "\n")
	log, err := os.ReadFile(r.log) // before it is closed
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^[\d:.]{12} `).ReplaceAllString(string(log), "")
	if want := "\nFirst.\nThen a-k\n→ Bash {}\nAt last [redacted].\n= success"; !strings.Contains(got, want) {
		t.Errorf("the log is\n%s", got)
	}
	all := r.events
	r.events = all[:slices.IndexFunc(all, func(e Event) bool { return e.Kind == ToolUse })]
	if got, want := r.said(Text), "First.\n\nThen a-k"; got != want {
		t.Errorf("said %q before the call, want %q", got, want)
	}
	r.events = all
	if got, want := r.said(Text), "First.\n\nThen a-k\n\nAt last [redacted]."; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// What may begin a secret at the end of a text that was cut waits for no call of a message without text.
func TestCutTextBeforeACall(t *testing.T) {
	t.Parallel()
	r := newReading(t, redact.New("a-known-secret"))
	r.readText(`{"type":"assistant","message":{"id":"m1","stop_reason":"max_tokens","content":[{"type":"text","text":"I look at a-k"}]}}` + "\n" +
		`{"type":"assistant","message":{"id":"m2","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}` + "\n")
	all := r.events
	r.events = all[:slices.IndexFunc(all, func(e Event) bool { return e.Kind == ToolResult })]
	if got, want := r.said(Text), "I look at a-k"; got != want {
		t.Errorf("said %q before the result, want %q", got, want)
	}
}

// The raw log has no pieces of messages. All other lines are there as they came, also such that share one.
func TestRawLogHasNoPieces(t *testing.T) {
	t.Parallel()
	piece := strings.TrimSpace(delta("text", "It is a-kno"))
	const alive, whole = `{"type":"keep_alive"}`, `{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`
	r := newReading(t, redact.New("a-known-secret"))
	r.Read(strings.NewReader(piece + "\n" + alive + "\r\n\n" + piece + "\nwords " + piece + whole + "\n" + alive))
	_, got := r.logs(t)
	if diff := cmp.Diff(alive+"\r\nwords "+whole+"\n"+alive+"\n", string(got)); diff != "" {
		t.Errorf("raw log (-want +got):\n%s", diff)
	}
}

// Only the pieces of a block come again in another line. All other events of a message are in the raw log, and one of an
// unknown kind is counted.
func TestEventsOfAMessageAreLogged(t *testing.T) {
	t.Parallel()
	event := func(of string) string { return `{"type":"stream_event","event":{"type":` + of + "}}\n" }
	events := event(`"message_start","message":{"id":"m1"}`) + event(`"ping"`) +
		event(`"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":7}`) +
		event(`"error","error":{"type":"overloaded_error"}`) + `{"type":"stream_event"}` + "\n"
	r := newReading(t, nil)
	r.readText(events + delta("text", "words"))
	_, raw := r.logs(t)
	if diff := cmp.Diff(events, raw); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"stream_event/error": 1}, r.facts.Unknown); diff != "" {
		t.Error(diff)
	}
}

// The lines of the raw log have no secret either that was cut between two messages: not its beginning, unless that is very short, and never its end.
func TestCutSecretInWholeLines(t *testing.T) {
	t.Parallel()
	const key = "ghp_0123456789abcdef"
	long := strings.Repeat("x", 2*maxPiece) + " "
	whole := func(id, text string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"text":%q,"type":"text"}],"id":%q}}`, text, id)
	}
	event := func(of string) string { return `{"type":"stream_event","event":{"type":"message_` + of + "}}\n" }
	start := func(id string) string { return event(`start","message":{"id":"` + id + `"}`) }
	for name, c := range map[string]struct {
		texts []string
		begin string // of the second message, if it begins in another way than the others
		want  []string
	}{
		"cut":        {[]string{"It is a-known-", "secret."}, "", []string{"It is [redacted]", "[redacted]."}},
		"of its own": {[]string{"a-known-", "secret"}, "", []string{"[redacted]", "[redacted]"}},
		"begun":      {[]string{"It is a-kno", "wn-secret: \"x\""}, "", []string{"It is a-kno", "[redacted]: \"x\""}},
		"cut twice":  {[]string{"a-known-", "secret", "-and-more"}, "", []string{"[redacted]", "[redacted]", "[redacted]"}},
		"with marks": {[]string{"a \"quoted\"", " secret\n."}, "", []string{"a [redacted]", "[redacted]\n."}},
		"a thought":  {[]string{"a-known-", "secret."}, start("m1") + delta("thinking", "Hm."), []string{"[redacted]", "[redacted]."}},
		"broken off": {[]string{"a-known-", "secret."}, start("b") + start("m1"), []string{"[redacted]", "[redacted]."}},
		"only a thought": {
			[]string{"a-known-", "secret."},
			start("b") + strings.Replace(blockStart, "text", "thinking", 1) + delta("thinking", "Hm.") +
				event(`delta","delta":{"stop_reason":"max_tokens"}`) + event(`stop"`) + start("m1"),
			[]string{"[redacted]", "[redacted]."},
		},
		"behind":          {[]string{"One. a-k", "x a-known-secret"}, "", []string{"One. a-k", "x [redacted]"}},
		"two":             {[]string{"a-known-", "secret a-known-secret"}, "", []string{"[redacted]", "[redacted] [redacted]"}},
		"no secret":       {[]string{"It is a-known-", "thing."}, "", []string{"It is [redacted]", "thing."}},
		"body of a shape": {[]string{key, "xyz more"}, "", []string{"[redacted]", "[redacted] more"}},
		"nothing":         {[]string{"It is a", " text."}, "", []string{"It is a", " text."}},
		"beside another":  {[]string{"a-known-secreta-kno", "wn-secret"}, "", []string{"[redacted]a-kno", "[redacted]"}},
		"before another": {
			[]string{"It is a-kno", "wn-secretghp_0123456789", " end"}, "", []string{"It is a-kno", "[redacted]", " end"},
		},
		"six of it": {[]string{"It is a-know", "n-secret"}, "", []string{"It is [redacted]", "[redacted]"}},
		"two cuts":  {[]string{"a-known-", "secret, a-known-", "secret"}, "", []string{"[redacted]", "[redacted], [redacted]", "[redacted]"}},
		"said again": {
			[]string{"a-known-", "secret. Its ", "secret life"}, "", []string{"[redacted]", "[redacted]. Its ", "secret life"},
		},
		"in a long answer": {[]string{long + "a-known-", "secret."}, "", []string{long + "[redacted]", "[redacted]."}},
	} {
		r := newReading(t, redact.New("a-known-secret", "a-known-secret-and-more", `"quoted" secret`))
		var in, want strings.Builder
		for i, text := range c.texts {
			id, stop := fmt.Sprint("m", i), "max_tokens"
			if i == len(c.texts)-1 {
				stop = "end_turn"
			}
			if i == 1 && c.begin != "" {
				in.WriteString(c.begin)
			} else {
				in.WriteString(start(id))
			}
			in.WriteString(blockStart)
			for n := range strings.SplitAfterSeq(text, " ") {
				in.WriteString(delta("text", n))
			}
			in.WriteString(whole(id, text) + "\n" + blockStop + event(`delta","delta":{"stop_reason":"`+stop+`"}`) + event(`stop"`))
			want.WriteString(whole(id, c.want[i]) + "\n")
		}
		last := len(c.texts) - 1
		const result = `{"subtype":"success","is_error":false,"result":%q,"type":"result"}` + "\n"
		fmt.Fprintf(&in, result, c.texts[last])
		fmt.Fprintf(&want, result, c.want[last])
		r.readText(in.String())
		_, log := r.logs(t)
		got := ""
		for line := range strings.Lines(log) {
			if !strings.Contains(line, `"stream_event"`) {
				got += line
			}
		}
		if got != want.String() {
			t.Errorf("%s: the whole lines are\n%s\nwant\n%s", name, redact.Clip(got, 2000), redact.Clip(want.String(), 2000))
		}
		if want := r.Redactor.String(strings.Join(c.texts, "")); r.said(Text) != want {
			t.Errorf("%s: said %.100q, want %.100q", name, r.said(Text), want)
		}
	}
}

// The repetition of a message that was broken off within its text begins a line of the log.
func TestBrokenOffTextsAreApart(t *testing.T) {
	t.Parallel()
	const start = `{"type":"stream_event","event":{"type":"message_start","message":{"id":%q}}}` + "\n"
	const whole = `{"type":"assistant","message":{"content":[{"text":%q,"type":"text"}],"id":%q,"stop_reason":%q}}` + "\n"
	for lines, want := range map[string]string{
		fmt.Sprintf(start, "m1") + fmt.Sprintf(whole, "One", "m1", "") + fmt.Sprintf(start, "m2") + delta("text", "Two"): "One\nTwo\n",
		fmt.Sprintf(whole, "rep", "m1", "max_tokens") + fmt.Sprintf(start, "m2") + delta("text", "o") +
			fmt.Sprintf(whole, "ort", "m3", "end_turn"): "repo\nort\n",
	} {
		r := newReading(t, nil)
		r.readText(lines)
		log, _ := r.logs(t)
		if got := regexp.MustCompile(`(?m)^[\d:.]{12} `).ReplaceAllString(log, ""); !strings.HasSuffix(got, want) {
			t.Errorf("the log is\n%s\nwant at its end\n%s", got, want)
		}
	}
}

// A message that is broken off is repeated, also where it continues one that the maximum of tokens cut, and a message
// after a tool's result begins another answer. The repetition may come without streaming.
func TestAnswerOfSeveralMessages(t *testing.T) {
	t.Parallel()
	event := func(id, of string) string {
		return `{"type":"stream_event","event":{"type":"message_` + of + `,"message":{"id":"` + id + `"}}}` + "\n"
	}
	start := func(id string) string { return event(id, `start"`) }
	stop := func(id, reason string) string {
		return event(id, `delta","delta":{"stop_reason":"`+reason+`"}`) + event(id, `stop"`)
	}
	block := func(id, reason, of string) string {
		return `{"type":"assistant","message":{"id":"` + id + `","stop_reason":` + reason + `,"content":[{` + of + "}]}}\n"
	}
	text := func(id, reason, text string) string { return block(id, reason, `"type":"text","text":"`+text+`"`) }
	call := func(id string) string {
		return block(id, "null", `"type":"tool_use","id":"t1","name":"Bash","input":{}`)
	}
	streamed := func(id, words, reason string) string {
		return start(id) + delta("text", words) + text(id, "null", words) + blockStop + stop(id, reason)
	}
	for name, c := range map[string]struct{ lines, result, want string }{
		"cut": {streamed("m1", "rep", "max_tokens") + streamed("m2", "ort", "end_turn"), "ort", "report"},
		"cut by the context": {
			streamed("m1", "rep", "model_context_window_exceeded") + streamed("m2", "ort", "end_turn"), "ort", "report",
		},
		"broken in the continuation": {
			streamed("m1", "rep", "max_tokens") + start("m2") + delta("text", "o") +
				text("m3", `"end_turn"`, "ort"), "ort", "report",
		},
		"broken, then cut": {
			start("m1") + delta("text", "r") + text("m2", `"max_tokens"`, "rep") + streamed("m3", "ort", "end_turn"),
			"ort", "report",
		},
		"continued without words": {streamed("m1", "report", "max_tokens") + start("m2") + stop("m2", "end_turn"), "", "report"},
		"gone on by itself":       {streamed("m1", "a", "end_turn") + streamed("m2", "b", "end_turn"), "b", "a\n\nb"},
		"before a call": {
			streamed("m1", "I look.", "max_tokens") + start("m2") + call("m2") + stop("m2", "tool_use") +
				streamed("m3", "report", "end_turn"), "report", "report",
		},
		"of a command": {streamed("m1", "report", "end_turn"), "another", "another"},
	} {
		r := newReading(t, nil)
		r.readText(c.lines + `{"type":"result","subtype":"success","is_error":false,"result":"` + c.result + "\"}\n" +
			streamed("m9", "again", "end_turn") +
			`{"type":"result","subtype":"success","is_error":false,"result":"again"}` + "\n")
		if diff := cmp.Diff([]string{c.want, "again"}, r.Facts().Answers); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", name, diff)
		}
	}
}

// The readable log has the words of a text before its end, without secrets, and has them once. A thought is no answer.
func TestTextIsInTheLogWhileItIsWritten(t *testing.T) {
	t.Parallel()
	r := newReading(t, redact.New("a-known-secret"))
	in, out := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.Read(in)
	}()
	log := func() string {
		text, err := os.ReadFile(r.log)
		if err != nil {
			t.Error(err)
		}
		return strings.ReplaceAll(string(text), "00:00:00.000 ", "")
	}
	r.now = func() time.Time { return time.Time{} }
	write := func(line string) {
		if _, err := io.WriteString(out, line); err != nil {
			t.Error(err)
		}
	}
	const start = `{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}` + "\n"
	const block = `{"type":"assistant","message":{"id":"m1","content":[{"type":%q,%q:%q}]}}` + "\n"
	write("\n")
	write("\n")
	want := log()
	for _, c := range []struct{ line, adds string }{
		{start, ""},
		{delta("thinking", "Hm, "), "(thinks) Hm, "},
		{delta("thinking", "so."), "so."},
		{fmt.Sprintf(block, "thinking", "thinking", "Hm, so."), "\n"},
		{blockStop, ""},
		{delta("text", "First a-kno"), "First "},
		{delta("text", "wn-secret.\n"), "[redacted]."},
		{`{"type":"news"}` + "\n", "\n! the CLI wrote something unknown: news\n"},
		{delta("text", "Then\nmore."), "… Then\n             more."},
		{fmt.Sprintf(block, "text", "text", "First a-known-secret.\nThen\nmore."), ""},
		{blockStop, ""},
		{messageEnd, "\n"},
		{delta("text", "Last."), "Last."},
	} {
		want += c.adds
		write(c.line)
		write("\n") // is read once the line before it was handled and flushed
		if diff := cmp.Diff(want, log()); diff != "" {
			t.Fatalf("after %s (-want +got):\n%s", c.line, diff)
		}
	}
	_ = out.Close()
	<-read
	if got := log(); got != want+"\n" {
		t.Errorf("in the end the log is %q", got)
	}
}

// A cut text should not end in the beginning of a secret.
func TestSecretsAtACut(t *testing.T) {
	t.Parallel()
	secret := "a-known-secret"
	for _, before := range []int{80 - 16, maxPreview - 5, 4<<10 - 5} {
		text := strings.Repeat("x", before) + secret + strings.Repeat("y", 20<<10)
		r := newReading(t, redact.New(secret))
		const call = `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash",` +
			`"input":{"command":"%[1]s"}}]}}`
		const result = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1",` +
			`"content":"%[1]s"}]}}`
		r.readText(fmt.Sprintf(call+"\n"+result+"\n%[1]s", text))
		log, _ := r.logs(t)
		for name, text := range map[string]string{
			"log": log, "tool use": r.said(ToolUse), "tool result": r.said(ToolResult),
		} {
			if text == "" || strings.Contains(text, "xa") {
				t.Errorf("after %d: the %s is %.200q", before, name, text)
			}
		}
	}
}

// The raw log has everything that was read, wherever a read ends, and no secret, also across the bounds of reads.
func TestRawLogOfManyReads(t *testing.T) {
	t.Parallel()
	secret := "a-known-secret"
	var text strings.Builder
	for text.Len() < 4*maxPiece {
		long := strings.Repeat("x", text.Len()%maxPiece)
		fmt.Fprintf(&text, `{"type":"keep_alive","n":%d,"x":"%s%s"}`+"\n", text.Len(), secret, long)
	}
	text.WriteString("the last line has no end, but " + secret)
	redactor := redact.New(secret)
	want := redactor.String(text.String() + "\n")
	for _, in := range []io.Reader{
		strings.NewReader(text.String()), iotest.HalfReader(strings.NewReader(text.String())),
		iotest.OneByteReader(strings.NewReader(text.String())),
	} {
		r := newReading(t, redactor)
		r.Read(in)
		_, got := r.logs(t)
		if string(got) != want {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if f := r.Facts(); f.Lines != int64(strings.Count(want, "\n")) || f.RawLines != 1 {
			t.Errorf("%d lines, of which %d are not of the protocol", f.Lines, f.RawLines)
		}
	}
}

// A partial answer is redacted where it was cut, too.
func TestSecretAtTheCutOfAPartialAnswer(t *testing.T) {
	t.Parallel()
	r := newReading(t, redact.New("a-known-secret", `"quoted"`))
	r.facts.Partial = []byte(strings.Repeat("x", maxPartial-5) + "a-known-")
	r.event(Event{Kind: ToolUse, Input: json.RawMessage(`{"quoted":1}`)})
	if got := string(r.events[0].Input); got != `"[redacted]"` {
		t.Errorf("input %s", got)
	}
	if got := r.Facts().Partial; string(got[maxPartial-5:]) != "[redacted]" {
		t.Errorf("partial of %d bytes ends with %q", len(got), got[maxPartial-5:])
	}
}

// Every text of an event is redacted.
func TestEventsAreRedacted(t *testing.T) {
	t.Parallel()
	const secret, hidden = "a-known-secret", "[redacted]"
	r := newReading(t, redact.New(secret))
	input := func(text string) json.RawMessage { return json.RawMessage(`{"x":"` + text + `"}`) }
	r.event(Event{
		Kind: ToolUse, Text: secret, Tool: secret, ToolID: secret, Parent: secret, Agent: secret, Input: input(secret),
	})
	want := Event{
		Kind: ToolUse, Text: hidden, Tool: hidden, ToolID: hidden, Parent: hidden, Agent: hidden,
		Input: input(hidden), Time: r.at,
	}
	if diff := cmp.Diff([]Event{want}, r.events); diff != "" {
		t.Error(diff)
	}
}

// So are the pieces of a tool call that the agent is writing.
func TestPiecesOfACallAreRedacted(t *testing.T) {
	t.Parallel()
	const secret, hidden = "a-known-secret", "[redacted]"
	r := newReading(t, redact.New(secret))
	for _, event := range []string{
		`"content_block_start","content_block":{"type":"tool_use","id":"` + secret + `","name":"` + secret + `"}`,
		`"content_block_delta","delta":{"type":"input_json_delta","partial_json":"` + secret + `"}`,
		`"content_block_stop"`,
	} {
		r.line([]byte(`{"type":"stream_event","event":{"index":0,"type":` + event + `}}`))
	}
	begun := Event{Kind: ToolInput, Tool: hidden, ToolID: hidden, Time: r.at}
	written := begun
	written.Text = hidden
	if diff := cmp.Diff([]Event{begun, written}, r.events); diff != "" {
		t.Error(diff)
	}
}

// A run that waits for the CLI's next line should not keep the one before it.
func TestWaitingKeepsNoLine(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"text":     "no JSON",
		"piece":    `{"type":"stream_event","event":{"delta":{"type":"text_delta","text":"x"}}}`,
		"message":  `{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}`,
		"question": `{"type":"control_request","request":{"subtype":"can_use_tool","input":{"content":"x"}}}`,
	} {
		r := newReading(t, nil)
		r.line([]byte(line))
		if !reflect.ValueOf(r.latest).IsZero() {
			t.Errorf("a %s is kept", name)
		}
	}
}

// The beginning of a line that is too long should be decoded: a question must be answered, or the CLI waits
// indefinitely, and a tool's output is a sign of work.
func TestBeginningsOfLongLinesCount(t *testing.T) {
	t.Parallel()
	r := newReading(t, nil)
	var clock time.Time
	r.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	long := strings.Repeat("x", 100)
	in := strings.NewReader(
		`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool",` +
			`"input":{"content":"` + long + "\"}}}\n" +
			`{"type":"keep_alive","x":"` + long + long + "\"}\n" +
			`{"type":"user","message":{"content":"` + long + long + "\"}}\n" +
			`{"type":"result","subtype":"success","x":"` + long + `","is_error":false}` + "\n")
	r.read(&lineReader{r: bufio.NewReaderSize(in, 16)}, &assembler{limit: 64})
	if diff := cmp.Diff([]string{"q1 of unknown form"}, r.asked); diff != "" {
		t.Error(diff)
	}
	if f := r.facts; f.CutLines != 4 || f.Lines != 4 || f.RawLines != 0 || len(f.Unknown) != 0 || !f.Last.IsError {
		t.Errorf("facts %+v", f)
	}
	if r.clock.Active.IsZero() {
		t.Error("no sign of work")
	}
}

func TestDecodeHead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","inp`: "control_request// q1",
		`{"type":"system","subtype":"init","model":"m","tools":["Ba`:                           "system/init/m ",
		`{"type":"system","subtype":{"odd":1},"x":"`:                                           "",
		`{"type":"system","model":{"odd":1},"x":"`:                                             "system// ",
		`{"type":"result","is_error":false,"result":"lon`:                                      "result// ",
		`{"type":"result","result":"lon`:                                                       "result// error",
		`{"type":"user"`:                                                                       "user// ",
		`{"type":"us`:                                                                          "",
		`{"message":{},"type`:                                                                  "",
		`[{"type":"user",`:                                                                     "",
		"\x00\xff":                                                                             "",
		``:                                                                                     "",
	} {
		l, ok := decodeHead([]byte(text))
		got := l.Type + "/" + l.Subtype + "/" + l.Model + " " + l.RequestID
		if l.IsError {
			got += "error"
		}
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("decodeHead(%s) = %q, want %q", text, got, want)
		}
	}
}

// A private key on stderr has many lines, and its end may be missing. A line may be endless.
func TestTextIsRedactedAsOne(t *testing.T) {
	t.Parallel()
	var tail Tail
	var all strings.Builder
	ReadText(strings.NewReader(
		strings.Repeat("x", 1<<20)+"\n\x1b[31merror:\x1b[0m\x00 no\nkey:\n-----BEGIN PRIVATE KEY-----\n"+fakeKey+
			"\n"+
			strings.Repeat(fakeKey[1:]+"\n", 5)+"-----END PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----\n"+fakeKey+"\n"+
			fakeKey+"\n.\nBEGIN PRIVATE KEY-----"),
		redact.New(), func(text []byte) { tail.Add(text); all.Write(text) })
	for name, text := range map[string]string{"text": all.String(), "tail": tail.String()} {
		if strings.Contains(text, fakeKey[1:40]) || !strings.Contains(text, "error:\\x00 no\n") ||
			strings.Count(text, "[redacted]") != 2 || strings.Count(text, "-----END") != 1 {
			t.Errorf("the %s is %.500s…%s", name, text, text[max(0, len(text)-500):])
		}
	}
	if tail := tail.String(); len(tail) > 2*tailWidth || !strings.HasSuffix(tail, ".\nBEGIN PRIVATE KEY-----") {
		t.Errorf("the tail has %d bytes, and its end is %q", len(tail), tail[max(0, len(tail)-50):])
	}
}

// What a stop interrupts did not fail; what failed before it did.
func TestStoppedCallsDidNotFail(t *testing.T) {
	t.Parallel()
	const result = `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":"x",` +
		`"is_error":true}]}}` + "\n"
	r := newReading(t, nil)
	r.readText(fmt.Sprintf(result, "before"))
	r.Stop()
	r.readText(fmt.Sprintf(result, "after"))
	failed := map[string]bool{}
	for _, e := range r.events {
		failed[e.ToolID] = e.Error
	}
	if !failed["before"] || failed["after"] || len(failed) != 2 {
		t.Errorf("failed: %v", failed)
	}
}

package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// cutOutput writes what the CLI writes about an answer whose messages end anywhere.
type cutOutput struct {
	strings.Builder

	random *rand.Rand
	n      int // messages
}

func (c *cutOutput) event(of string) {
	fmt.Fprintf(c, `{"type":"stream_event","event":{"type":%s}}`+"\n", of)
}

func (c *cutOutput) start() {
	c.n++
	c.event(fmt.Sprintf(`"message_start","message":{"id":"m%d"}`, c.n))
}

func (c *cutOutput) stop(reason string) {
	c.event(fmt.Sprintf(`"message_delta","delta":{"stop_reason":%q}`, reason))
	c.event(`"message_stop"`)
}

// pieces writes a text in pieces of random lengths, with other lines between them.
func (c *cutOutput) pieces(kind, field, text string) {
	for text != "" {
		n := 1 + c.random.IntN(len(text))
		if c.random.IntN(2) == 0 {
			n = min(n, 4)
		}
		c.event(fmt.Sprintf(`"content_block_delta","delta":{"type":%q,%q:%s}`, kind, field, quote(text[:n])))
		if text = text[n:]; c.random.IntN(4) == 0 {
			c.WriteString(`{"type":"keep_alive"}` + "\n")
		}
	}
}

// text writes the pieces of a text block and, if it is whole, its line.
func (c *cutOutput) text(text string, whole bool) {
	c.event(`"content_block_start","content_block":{"type":"text"}`)
	c.pieces("text_delta", "text", text)
	if whole {
		c.whole(fmt.Sprintf(`"type":"text","text":%s`, quote(text)), "")
		c.event(`"content_block_stop"`)
	}
}

func (c *cutOutput) thought(text string, whole bool) {
	c.event(`"content_block_start","content_block":{"type":"thinking"}`)
	c.pieces("thinking_delta", "thinking", text)
	if whole {
		c.whole(fmt.Sprintf(`"type":"thinking","thinking":%s`, quote(text)), "")
		c.event(`"content_block_stop"`)
	}
}

func (c *cutOutput) call(input string, whole bool) {
	c.event(`"content_block_start","content_block":{"type":"tool_use","id":"t1","name":"Bash"}`)
	c.pieces("input_json_delta", "partial_json", input)
	if whole {
		c.event(`"content_block_stop"`)
	}
}

func (c *cutOutput) whole(block, stop string) {
	fmt.Fprintf(c, `{"type":"assistant","message":{"id":"m%d","stop_reason":%q,"content":[{%s}]}}`+"\n", c.n, stop, block)
}

// said writes a text of a sub-agent, whose lines do not say why its message has ended, and another's beside it.
func (c *cutOutput) said(agent, text string) {
	const form = `{"type":"assistant","parent_tool_use_id":%q,"message":{"id":"%[1]s-%d","stop_reason":null,"content":[%s]}}` + "\n"
	c.n++
	fmt.Fprintf(c, form, agent, c.n, `{"type":"text","text":`+quote(text)+`}`)
	if c.random.IntN(2) == 0 {
		fmt.Fprintf(c, form, "another", c.n, `{"type":"text","text":"Words of another."}`)
	}
	if c.random.IntN(2) == 0 {
		fmt.Fprintf(c, form, agent, c.n, `{"type":"thinking","thinking":"Hm."}`)
	}
}

// returned writes the end of a sub-agent, twice with its latest text.
func (c *cutOutput) returned(agent, text string) {
	const form = `{"type":"system","subtype":"task_notification","tool_use_id":%q,"status":"completed","summary":%s}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%[1]q,"content":[` +
		`{"type":"text","text":%[3]s}]}]},"tool_use_result":{"content":[{"type":"text","text":%[2]s}]}}` + "\n"
	fmt.Fprintf(c, form, agent, quote(text), quote("The report follows:\n  "+text+"\nagentId: 1"))
}

func (c *cutOutput) result(text string) {
	fmt.Fprintf(c, `{"type":"result","subtype":"success","result":%s}`+"\n", quote(text))
}

func quote(s string) string {
	quoted, _ := json.Marshal(s) // as the CLI, which has no HTML in mind
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
}

// cuts are the ways in which an answer can be cut into a and b.
var cuts = map[string]func(c *cutOutput, a, b string){
	"max tokens": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		c.start()
		c.text(b, true)
		c.stop("end_turn")
		c.result(b)
	},
	"a thought between": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		c.start()
		c.thought("Hm.", true)
		c.stop("max_tokens")
		c.start()
		c.thought("Hm?", true)
		c.text(b, true)
		c.text("More.", true)
		c.stop("end_turn")
		c.result("More.")
	},
	"broken off continuation": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		c.start()
		c.start()
		c.text(b, true)
		c.stop("end_turn")
		c.result(b)
	},
	"cut twice": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		at := c.random.IntN(len(b) + 1)
		c.start()
		c.text(b[:at], true)
		c.stop("max_tokens")
		c.start()
		c.text(b[at:], true)
		c.stop("end_turn")
		c.result(b[at:])
	},
	"without pieces": func(c *cutOutput, a, b string) {
		c.n++
		c.whole(fmt.Sprintf(`"type":"text","text":%s`, quote(a)), "max_tokens")
		c.n++
		c.whole(fmt.Sprintf(`"type":"text","text":%s`, quote(b)), "end_turn")
		c.result(b)
	},
	"broken off and repeated": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, false)
		c.start()
		c.text(a+b, true)
		c.stop("end_turn")
		c.result(a + b)
	},
	"broken off after an answer": func(c *cutOutput, a, b string) {
		c.start()
		c.text("One.", true)
		c.text(a, false)
		c.result("")
		_ = b
	},
	"killed": func(c *cutOutput, a, _ string) {
		c.start()
		c.text(a, false)
	},
	"not continued": func(c *cutOutput, a, _ string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		c.result(a)
	},
	"a thought": func(c *cutOutput, a, _ string) {
		c.start()
		c.thought(a, true)
		c.stop("max_tokens")
		c.start()
		c.text("Well.", true)
		c.stop("end_turn")
		c.result("Well.")
	},
	"a thought broken off": func(c *cutOutput, a, b string) {
		c.start()
		c.thought(a, false)
		c.start()
		c.thought(a+b, true)
		c.text("Well.", true)
		c.stop("end_turn")
		c.result("Well.")
	},
	"a call": func(c *cutOutput, a, _ string) {
		c.start()
		c.call(`{"command":`+strings.TrimSuffix(quote(a), `"`), true)
		c.stop("max_tokens")
		c.result("")
	},
	"a call broken off": func(c *cutOutput, a, b string) {
		c.start()
		c.call(`{"command":`+strings.TrimSuffix(quote(a), `"`), false)
		c.start()
		c.call(`{"command":`+quote(a+b)+`}`, true)
		c.stop("tool_use")
		c.result("")
	},
	"a sub-agent": func(c *cutOutput, a, b string) {
		c.said("t1", a)
		c.said("t1", b)
		c.returned("t1", b)
		c.result("Well.")
	},
	"a sub-agent cut twice": func(c *cutOutput, a, b string) {
		at := c.random.IntN(len(b) + 1)
		c.said("t1", a)
		c.said("t1", b[:at])
		c.said("t1", b[at:])
		c.returned("t1", b[at:])
		c.result("Well.")
	},
	"a sub-agent that was killed": func(c *cutOutput, a, _ string) { c.said("t1", a) },
	"a call after a cut": func(c *cutOutput, a, b string) {
		c.start()
		c.text(a, true)
		c.stop("max_tokens")
		c.start()
		c.text(b, true)
		c.call(`{"command":`+quote(a+b)+`}`, true)
		c.stop("tool_use")
		c.result("")
	},
}

// Wherever a message, a block or a piece ends within a secret, nobody who reads the events, the logs or the answers
// sees more than a few characters of its beginning, or any of its end.
func TestSecretsAreHiddenWhereverTheyAreCut(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	secrets := []string{"kq7-Zw93vR_x2Lm8", `p"Wq\8Ty zu"4K`, "ghp_0a1B2c3D4e5F6g7H8i9J"}
	redactor := redact.New(secrets[:2]...)
	for _, name := range slices.Sorted(maps.Keys(cuts)) { // in one order, so that the seed repeats a failure
		for _, secret := range secrets {
			for at := range len(secret) + 1 {
				before, after := []string{"", "It is ", "Long. \n\n"}[random.IntN(3)], []string{"", ".", " and\nmore"}[random.IntN(3)]
				c := &cutOutput{random: random}
				cuts[name](c, before+secret[:at], secret[at:]+after)
				rest := 3
				if strings.Contains(c.String(), "The report follows") { // less is shown where a report repeats it
					rest = 8
				}
				for _, shown := range sinks(t, redactor, c.String()) {
					if part := shows(shown, secret, at, rest); part != "" {
						t.Fatalf("seed %d, %s at %d: %q is in\n%s\nof\n%s", seed, name, at, part, shown, c.String())
					}
				}
			}
		}
	}
}

// A CLI that is killed while it writes a line shows no part of a secret in it, and nothing of a piece of a message, which
// may be the rest of a secret.
func TestKilledWithinALine(t *testing.T) {
	t.Parallel()
	const secret, shape = "kq7-Zw93vR_x2Lm8-Qy5T", "ghp_0a1B2c3D4e5F6g7"
	c := &cutOutput{random: rand.New(rand.NewPCG(1, 1))}
	c.start()
	c.event(`"content_block_delta","delta":{"type":"text_delta","text":"It is ` + secret[:10] + `"}`)
	begun := &cutOutput{random: rand.New(rand.NewPCG(1, 1))}
	begun.start()
	begun.text("It is "+secret[:17], true)
	begun.stop("max_tokens")
	for name, output := range map[string]string{
		"a message":            `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"It is ` + secret[:20],
		"no line of the CLI":   "It is " + secret[:20],
		"the result of a tool": `{"type":"user","message":{"content":[{"type":"tool_result","content":"` + shape,
		"a piece": c.String() + `{"type":"stream_event","event":{"type":"content_block_delta",` +
			`"delta":{"type":"text_delta","text":"` + secret[10:] + " and",
		"a piece in the line of another": c.String() + `{"type":"keep_alive"}{"type":"stream_event","event":{"type":"content_block_delta",` +
			`"delta":{"type":"text_delta","text":"` + secret[10:] + " and",
		"the message after a cut one": begun.String() + `{"type":"assistant","message":{"id":"n","content":[{"type":"text","text":"` +
			secret[17:] + " and",
		"the result after a cut one": begun.String() + `{"type":"result","subtype":"success","result":"` + secret[17:] + " and",
	} {
		for _, shown := range sinks(t, redact.New(secret), output) {
			if part := shows(shown, secret, 10, 3) + shows(shown, secret, 17, 3) + shows(shown, shape, 0, 3); part != "" {
				t.Errorf("%s: %q is in\n%s", name, part, shown)
			}
		}
	}
}

// A line that has ended is in both logs, however much it looks like the beginning of a line of the protocol.
func TestBrokenLinesAreLogged(t *testing.T) {
	t.Parallel()
	for _, output := range []string{
		`{"type":"config_error",` + "\n" + `  "message": "the licence has expired"}` + "\n",
		`{"type":"assistant","message":{"type":"result","subtype":"success","result":"Done"}` + "\n",
		`{"type":"keep_alive"}{"type":"result","subtype":"success","result":"Done"` + "\r\n",
	} {
		r := newReading(t, redact.New())
		r.readText(output)
		log, raw := r.logs(t)
		for line := range strings.Lines(strings.TrimPrefix(output, `{"type":"keep_alive"}`)) {
			if line = strings.TrimSpace(line); !strings.Contains(log, "[stdout] "+line) || !strings.Contains(raw, line) ||
				!slices.Contains(r.Facts().Raw, line) {
				t.Errorf("%s is missing in\n%s\n%s\n%q", line, log, raw, r.Facts().Raw)
			}
		}
	}
}

// The half of a secret is hidden in the words of its agent only: tools and other agents may use the same word.
func TestWordsOfOthersStay(t *testing.T) {
	t.Parallel()
	c := &cutOutput{random: rand.New(rand.NewPCG(1, 1))}
	c.start()
	c.text("It is a-known-", true)
	c.stop("max_tokens")
	c.start()
	c.text("secret.", true)
	c.call(`{}`, true)
	const result = `{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"secret sauce"}]}]}}`
	const agent = `{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m9","content":[{"type":"text","text":"secret sauce"}]}}`
	c.WriteString(result + "\n" + agent + "\n")
	c.result("secret.")
	const form = `{"type":"assistant","parent_tool_use_id":%q,"message":{"id":"m","content":[{"type":"text","text":%q}]}}` + "\n"
	fmt.Fprintf(c, form, "t2", "a-known-")
	fmt.Fprintf(c, form, "t3", "secret life")
	fmt.Fprintf(c, form, "t2", "secret end")
	r := newReading(t, redact.New("a-known-secret"))
	r.readText(c.String())
	_ = r.Log.Close()
	raw, err := os.ReadFile(strings.TrimSuffix(r.log, ".log") + ".ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(raw), r.said(Text)} {
		if !strings.Contains(text, "secret life") || strings.Contains(text, "secret end") || strings.Contains(text, "secret.") {
			t.Error(text)
		}
	}
	if !bytes.Contains(raw, []byte(result)) || !bytes.Contains(raw, []byte(agent)) {
		t.Errorf("%s", raw)
	}
}

// The parts of a secret that was cut stay hidden where others repeat them, in every kind of line.
func TestPartsOfACutSecretStayHidden(t *testing.T) {
	t.Parallel()
	const secret = "kq7-Zw93vR_x2Lm8-Qy5T"
	a, b := "It is "+secret[:10], secret[10:]+" and more"
	call := func(c *cutOutput) {
		c.WriteString(`{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"y","content":[` +
			`{"type":"tool_use","id":"u1","name":"Bash","input":{}}]}}` + "\n")
	}
	thought := func(c *cutOutput, text string) {
		c.WriteString(`{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"x","content":[` +
			`{"type":"thinking","thinking":` + quote(text) + `}]}}` + "\n")
	}
	for name, write := range map[string]func(c *cutOutput){
		"a report of several texts": func(c *cutOutput) { c.said("t1", "Done."); c.returned("t1", a+"\n"+b+"\nDone.") },
		"a report after a call":     func(c *cutOutput) { call(c); c.returned("t1", b) },
		"the words of the parent": func(c *cutOutput) {
			c.start()
			c.text("The agent said: "+b, true)
			c.stop("end_turn")
			c.result("The agent said: " + b)
		},
		"an answer of two blocks": func(c *cutOutput) {
			c.start()
			c.text(b, true)
			c.text("End.", true)
			c.stop("end_turn")
			c.result(b + "\n\nEnd.")
		},
		"a line by the CLI": func(c *cutOutput) {
			c.WriteString(`{"type":"user","isSynthetic":true,"message":{"content":` + quote("<note>"+b+"</note>") + `}}` + "\n")
		},
		"progress": func(c *cutOutput) {
			c.WriteString(`{"type":"system","subtype":"task_progress","description":` + quote(b) + `}` + "\n")
		},
		"a hook": func(c *cutOutput) {
			c.WriteString(`{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback","input":` +
				`{"hook_event_name":"SubagentStop","last_assistant_message":` + quote(b) + `}}}` + "\n")
		},
	} {
		c := &cutOutput{random: rand.New(rand.NewPCG(3, 1))}
		c.said("t1", a)
		c.said("t1", b)
		write(c)
		staysHidden(t, name, secret, c.String())
	}
	for name, write := range map[string]func(c *cutOutput){
		"thoughts": func(c *cutOutput) { thought(c, a); thought(c, b) },
		"hundreds of others": func(c *cutOutput) {
			c.said("t1", a)
			for i := range 300 {
				c.said(fmt.Sprint("o", i), "Hm.")
			}
			c.said("t1", b)
		},
		"sent to the background": func(c *cutOutput) { c.said("t1", a); c.returned("t1", "It goes on."); c.said("t1", b) },
	} {
		c := &cutOutput{random: rand.New(rand.NewPCG(3, 1))}
		write(c)
		staysHidden(t, name, secret, c.String())
	}
}

func staysHidden(t *testing.T, name, secret, output string) {
	t.Helper()
	for _, shown := range sinks(t, redact.New(secret), output) {
		if part := shows(shown, secret, 10, 3); part != "" {
			t.Errorf("%s: %q is in\n%s", name, part, shown)
		}
	}
}

// Only the ends of texts that may be cut within a secret are remembered, of a limited number of sub-agents, until the
// turn ends.
func TestEndsOfTextsAreForgotten(t *testing.T) {
	t.Parallel()
	c := &cutOutput{random: rand.New(rand.NewPCG(1, 1))}
	c.said("t1", "It is ghp_"+strings.Repeat("x", 2*maxSecret))
	c.said("t2", "Words.")
	r := newReading(t, redact.New())
	r.readText(c.String())
	if n := len(r.spoken["t1"]); n != maxSecret || len(r.spoken) != 1 {
		t.Errorf("%d bytes are kept, of %d agents", n, len(r.spoken))
	}
	r.spoken[""] = "ghp_"
	for i := range maxSpoken + 1 {
		r.showText(fmt.Sprint("t", i), "ghp_")
	}
	if n := len(r.spoken); n > maxSpoken || r.spoken[""] == "" {
		t.Errorf("%d are remembered, the main agent's: %q", n, r.spoken[""])
	}
	c.Reset()
	c.result("Done.")
	r.readText(c.String())
	if len(r.spoken) > 0 {
		t.Error("some are remembered after the turn")
	}
}

// sinks returns what readers see of an output, also of the texts in its lines when they are put together.
func sinks(t *testing.T, redactor *redact.Redactor, output string) []string {
	t.Helper()
	r := newReading(t, redactor)
	r.readText(output)
	log, raw := r.logs(t)
	all := []string{r.said(Text), r.said(Thinking), r.said(ToolInput), r.said(TurnEnd), r.said(ToolResult)}
	f := r.Facts()
	all = append(all, r.Redactor.String(strings.Join(f.Answers, "\n")), r.Redactor.String(string(f.Partial)),
		strings.Join(f.Raw, "\n"), log, raw)
	if strings.Contains(raw, "content_block_delta") {
		t.Fatalf("pieces are in the raw log:\n%s", raw)
	}
	var wholes, joined strings.Builder
	for line := range strings.Lines(raw) {
		var l struct {
			Result  string
			Message struct {
				Content []struct{ Text, Thinking string }
			}
		}
		if json.Unmarshal([]byte(line), &l) != nil { // broken off, or without texts of this shape
			continue
		}
		wholes.WriteString(l.Result + "\n")
		for _, block := range l.Message.Content {
			joined.WriteString(block.Text + block.Thinking)
			wholes.WriteString(block.Text + block.Thinking + "\n")
		}
	}
	return append(all, joined.String(), wholes.String())
}

// shows returns the part of a secret that a text shows and should not: more of its beginning than many texts end with,
// or at least so many bytes that come after the place where it was cut.
func shows(text, secret string, at, end int) string {
	least := max(6, end)
	for from := range len(secret) - least + 1 {
		part := secret[from : from+least]
		if strings.Contains(text, part) || strings.Contains(text, strings.Trim(quote(part), `"`)) {
			return part
		}
	}
	if rest := secret[at:]; at > 0 && len(rest) >= end && strings.Contains(text, rest) {
		return rest
	}
	return ""
}

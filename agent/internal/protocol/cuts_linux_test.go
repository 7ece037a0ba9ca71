package protocol

import (
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
		for i, secret := range secrets {
			for at := range len(secret) + 1 {
				if i > 0 && random.IntN(4) > 0 { // each output waits for the disk
					continue
				}
				before, after := []string{"", "It is ", "Long. \n\n"}[random.IntN(3)], []string{"", ".", " and\nmore"}[random.IntN(3)]
				c := &cutOutput{random: random}
				cuts[name](c, before+secret[:at], secret[at:]+after)
				for _, shown := range sinks(t, redactor, c.String()) {
					if part := shows(shown, secret, at); part != "" {
						t.Fatalf("seed %d, %s at %d: %q is in\n%s\nof\n%s", seed, name, at, part, shown, c.String())
					}
				}
			}
		}
	}
}

// The half of a secret is hidden in the lines of its message only: tools and sub-agents may use the same word.
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
	all := sinks(t, redact.New("a-known-secret"), c.String())
	raw := all[8]
	if !strings.Contains(raw, result) || !strings.Contains(raw, agent) || strings.Contains(raw, `"secret."`) {
		t.Error(raw)
	}
}

// sinks returns what readers see of an output, also of the texts in its lines when they are put together.
func sinks(t *testing.T, redactor *redact.Redactor, output string) []string {
	t.Helper()
	r := newReading(t, redactor)
	r.readText(output)
	if err := r.Log.Close(); err != nil {
		t.Fatal(err)
	}
	all := []string{r.said(Text), r.said(Thinking), r.said(ToolInput), r.said(TurnEnd)}
	f := r.Facts()
	all = append(all, redactor.String(strings.Join(f.Answers, "\n")), redactor.String(string(f.Partial)),
		strings.Join(f.Raw, "\n"))
	raw := ""
	for _, ext := range []string{".log", ".ndjson"} {
		data, err := os.ReadFile(strings.TrimSuffix(r.log, ".log") + ext)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(data)
		all = append(all, raw)
	}
	var pieces, wholes, joined strings.Builder
	for line := range strings.Lines(raw) {
		var l struct {
			Result string
			Event  struct {
				Delta struct {
					Text, Thinking string
					JSON           string `json:"partial_json"`
				}
			}
			Message struct {
				Content []struct{ Text, Thinking string }
			}
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		pieces.WriteString(l.Event.Delta.Text + l.Event.Delta.Thinking + l.Event.Delta.JSON)
		wholes.WriteString(l.Result + "\n")
		for _, block := range l.Message.Content {
			joined.WriteString(block.Text + block.Thinking)
			wholes.WriteString(block.Text + block.Thinking + "\n")
		}
	}
	return append(all, pieces.String(), joined.String(), wholes.String())
}

// shows returns the part of a secret that a text shows and should not: more of its beginning than many texts end with,
// or what comes after the place where it was cut.
func shows(text, secret string, at int) string {
	const least = 6
	for from := range len(secret) - least + 1 {
		part := secret[from : from+least]
		if strings.Contains(text, part) || strings.Contains(text, strings.Trim(quote(part), `"`)) {
			return part
		}
	}
	if end := secret[at:]; at > 0 && len(end) > 2 && strings.Contains(text, end) {
		return end
	}
	return ""
}

package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
)

// invisible represents the space that keeps text from being a mention.
const invisible = "\u200b"

// The Home tab names all repositories of a task.
func TestHomeOfSeveralRepositories(t *testing.T) {
	t.Parallel()
	st := tasks.Status{Task: tasks.Task{ID: "x", Prompt: "do it", Repo: "acme/api", Also: []string{"acme/web"}}}
	if got := Console(nil).homeTask(st, "", time.Time{}); !strings.Contains(got, "acme/api, acme/web") {
		t.Errorf("%q", got)
	}
}

// The work in each repository has a line.
func TestEndingFoot(t *testing.T) {
	t.Parallel()
	work := func(repo string) *tasks.Published {
		ref := forge.PullRequestRef{Number: 3, URL: "https://hub.example/" + repo}
		return &tasks.Published{Work: tasks.Work{Repo: repo}, PullRequest: ref}
	}
	e := tasks.Ending{Kind: tasks.Answered, Published: work("acme/api"), Also: []*tasks.Published{work("acme/web")}}
	const want = "Pull request acme/api#3: https://hub.example/acme/api\nPull request acme/web#3: https://hub.example/acme/web\n"
	if foot := endingFoot(tasks.Task{ID: "x"}, e); !strings.HasPrefix(foot, want) {
		t.Errorf("%q", foot)
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<!channel> <!here|x> <!everyone>": "<~!channel> <~!here|x> <~!everyone>",
		"<!subteam^S1|@ops> <!group>":      "<~!subteam^S1|@ops> <~!group>",
		"<@U0BOB> <@u0bob|bob>":            "<~@U0BOB> <~@u0bob|bob>",
		`<\!channel> <\@U0BOB>`:            `<~\!channel> <~\@U0BOB>`,
		"&lt;!channel&gt; &#60;@U0BOB>":    "&lt;~!channel&gt; &#60;~@U0BOB>",
		"&#x3C;!here>":                     "&#x3C;~!here>",
		"@here @channel, (@Everyone)":      "@~here @~channel, (@~Everyone)",
		"`@here`\n```\n<!channel>\n```":    "`@~here`\n```\n<~!channel>\n```",
		"a@here.org @hereby @heretic":      "a@here.org @hereby @heretic",
		"<!DOCTYPE html> <!-- x --> a<b@c": "<!DOCTYPE html> <!-- x --> a<b@c",
		"plain":                            "plain",
	} {
		equal(t, text, NoPings(text), strings.ReplaceAll(want, "~", invisible))
	}
}

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a < b && c > d":                          "a &lt; b &amp;&amp; c &gt; d",
		"**bold** and **two words**":              "*bold* and *two words*",
		"# Title":                                 "*Title*",
		"### A **bold** `x*y` title ##\ntext":     "*A bold `x*y` title*\ntext",
		"#channel":                                "#channel",
		"see [the page](https://x.org/?a=1&b=2).": "see <https://x.org/?a=1&amp;b=2|the page>.",
		"**[x|y](https://x.org)**":                "*<https://x.org|x/y>*",
		"![shot](https://x.org/a.png)":            "<https://x.org/a.png|shot>",
		"[ask](mailto:a@x.org)":                   "<mailto:a@x.org|ask>",
		"[main](docs/main.md)":                    "main (docs/main.md)",
		"[x](!channel) [y](@U0BOB)":               "x (!channel) y (@U0BOB)",
		"[x](https://x.org|<!channel>)":           "x (https://x.org|&lt;!channel&gt;)",
		"`**x** [a](https://b) <`":                "`**x** [a](https://b) &lt;`",
		"```go\n# a **b** <c>\n```\n# d":          "```\n# a **b** &lt;c&gt;\n```\n*d*",
		"- x\n  ~~~\n  [a](https://b)\n  ~~~":     "- x\n```\n  [a](https://b)\n```",
		"":                                        "",

		// Reported of other converters: hermes-agent#3715, PostHog#62322, slackify-markdown-python#10.
		"***both*** and ~~gone~~":                 "*_both_* and ~gone~",
		"[Foo](https://x.org/Foo_(bar)) and more": "<https://x.org/Foo_(bar)|Foo> and more",
		"**<https://x.org/a>** <mailto:a@x.org>":  "*<https://x.org/a>* <mailto:a@x.org>",
		"<https://x.org/a|words> <!channel> <x>":  "&lt;https://x.org/a|words&gt; &lt;!channel&gt; &lt;x&gt;",
		"### **Step 1**: words":                   "*Step 1: words*",
		"> quoted":                                "&gt; quoted",

		"<https://a><https://b>":               "<https://a><https://b>",
		"a|<https://a>|b":                      "a|<https://a>|b",
		"[<https://a>](https://b)":             "<https://b|https://a>",
		"[**x** <y>](https://a?b&c)":           "<https://a?b&amp;c|*x* &lt;y&gt;>",
		"[`a[0]`](https://a)":                  "<https://a|`a[0]`>",
		"[a `b](https://x) c`":                 "[a `b](https://x) c`",
		"**a `b**c` ~~d~~**":                   "*a `b**c` ~d~*",
		"[x](https://a/**b**) <https://~~c~~>": "<https://a/**b**|x> <https://~~c~~>",
	} {
		equal(t, text, mrkdwn(text), want)
	}
}

// A link is the only Slack notation that errand writes, and no link notifies a person.
func TestMrkdwnOfQuietTextPingsNobody(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"<!channel> <@U0BOB> @here", "# <!channel>", "**<@U0BOB>**", "[<!here>](https://x.org)",
		"[a](https://<!channel>)", "`<!here>`", "# @**here**",
		"```\n<!channel>\n```", "&lt;!channel&gt;", "[x](https://x.org|@U0BOB)",
	} {
		got := mrkdwn(NoPings(text))
		for _, ping := range []string{"<!", "<@", "@here", "@channel"} {
			if strings.Contains(got, ping) {
				t.Errorf("%s: %q has %s", text, got, ping)
			}
		}
	}
}

// A table that Slack would not show is still readable.
func TestTables(t *testing.T) {
	t.Parallel()
	rows := func(n int) string { return "| a | b |\n|---|:-:|\n" + strings.Repeat("| 1 | 2 |\n", n) }
	wide := strings.Repeat("| x ", 21) + "|\n" + strings.Repeat("|---", 21) + "|\n"
	for name, tc := range map[string]struct {
		in     string
		framed bool
	}{
		"small":         {"x\n\n" + rows(99) + "\ny", false},
		"many rows":     {"x\n\n" + rows(100) + "\ny", true},
		"many columns":  {wide, true},
		"long":          {"| a | b |\n|---|---|\n| " + strings.Repeat("x", maxTableSize) + " | 2 |", true},
		"in code":       {"```\n" + rows(200) + "```\n", false},
		"no table":      {strings.Repeat("a | b\n", 200), false},
		"rule":          {"a\n---\n" + strings.Repeat("a | b\n", 200), false},
		"end of a text": {"| a |\n", false},
	} {
		got := fenceTables(tc.in)
		if framed := got != tc.in; framed != tc.framed {
			t.Errorf("%s: framed: %v", name, framed)
		}
		if tc.framed && strings.Count(got, "```") != 2 {
			t.Errorf("%s: %s", name, got)
		}
	}
	want := "x\n\n```\n" + rows(100) + "```\n\ny"
	equal(t, "framed", fenceTables("x\n\n"+rows(100)+"\ny"), want)
	for _, p := range Parts(Marker{}, "", fmt.Sprint(rows(3000)), "") {
		equal(t, "fences", strings.Count(p.Body, "```"), 2)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ExampleLiteral() {
	fmt.Println(Literal("if a < b:\n\treturn", 80))
	// Output: if a &lt; b: return
}

// The reader learns what happens without an answer.
func TestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]tasks.Question{
		"I continue without an answer.": {Text: "Red?"}, "I continue without it.": {Text: "May I?", Consent: "Bash"},
	} {
		if got := Console(nil).HowToAnswer(tasks.Task{}, q, "U1"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", q.Text, got)
		}
	}
}

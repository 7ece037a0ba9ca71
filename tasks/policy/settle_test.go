package policy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSettle decides every row, and compares the rows with those of docs/configure.md.
func TestSettle(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, row := range [][]string{ // request, channel, repository, own, fleet, offered, what counts
		{"opus", "sonnet", "haiku", "fable", "sonnet", "", "opus of the request"},
		{"", "sonnet", "haiku", "fable", "opus", "", "sonnet of channel C0123ABCD"},
		{"", "", "haiku", "fable", "opus", "", "haiku of repository acme/api"},
		{"", "", "", "fable", "opus", "", "fable of .github/errand.yml"},
		{"", "", "", "fable", "opus", "opus, haiku", "opus of the fleet, and a notice"},
		{"", "", "haiku", "fable", "opus", "opus, sonnet", "haiku of repository acme/api, and a notice"},
		{"fable", "haiku", "", "", "opus", "opus, sonnet", "haiku of channel C0123ABCD, and a notice"},
		{"", "", "", "", "opus", "", "opus of the fleet"},
		{"", "", "", "", "", "", "the CLI's own"},
	} {
		for _, name := range []string{"model", "effort"} {
			w := Wishes{
				Request: wish(name, "the request", row[0]), Channel: wish(name, "channel C0123ABCD", row[1]),
				Repositories: []Wish{wish(name, "repository acme/api", row[2]), wish(name, "repository acme/web", "no")},
				Own:          wish(name, ".github/errand.yml", row[3]), Fleet: wish(name, "the fleet", row[4]),
			}
			if row[5] != "" {
				w.Models, w.Efforts = strings.Split(row[5], ", "), strings.Split(row[5], ", ")
			}
			s, got := Settle(w), "the CLI's own"
			if len(s.Settings) > 0 {
				got = s.Value(name) + " of " + s.Settings[0].Of
			}
			if len(s.Notes) > 0 {
				got += ", and a notice"
			}
			if got != row[6] || len(s.Settings) > 1 {
				t.Errorf("%s of %q: %s", name, row, got)
			}
		}
		want.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	compare(t, "../../docs/configure.md", "| request | channel | repository | `.github/errand.yml` | fleet | `options:` | "+
		"what counts |\n|---|---|---|---|---|---|---|\n", want.String())
}

func wish(name, of, value string) Wish {
	if name == "model" {
		return Wish{Of: of, Model: value}
	}
	return Wish{Of: of, Effort: value}
}

// All texts of the operator count: the fleet's before those of the repository's own files, then those for each
// repository and for the channel.
func TestSettleTexts(t *testing.T) {
	t.Parallel()
	say := func(of string) Wish { return Wish{Of: of, Instructions: "text of " + of} }
	s := Settle(Wishes{
		Request: Wish{Of: "the request"}, Channel: say("channel"), Fleet: say("fleet"),
		Repositories: []Wish{say("api"), {Of: "web"}, say("docs")},
	})
	after := []Text{{"api", "text of api"}, {"docs", "text of docs"}, {"channel", "text of channel"}}
	if !slices.Equal(s.Before, []Text{{"fleet", "text of fleet"}}) || !slices.Equal(s.After, after) {
		t.Errorf("%+v", s)
	}
}

// compare compares the rows of a document's table that follow its head, or writes them with -update.
func compare(t *testing.T, file, head, want string) {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), head)
	got, after, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("%s has no such table", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+head+want+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got+"\n" != want {
		t.Errorf("%s shows another table: run go test ./tasks/policy -update", file)
	}
}

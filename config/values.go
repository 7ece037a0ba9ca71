package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/argument"
	patterns "github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/internal/refname"
)

// valueChecks are the checks that the tags of keys of errand.yaml name. Each returns what is wrong with a value, or "",
// and a remedy. bound is the text after the name in the tag. What is required, and what depends on other keys, is
// checked by section.
var valueChecks = map[string]func(value, bound string) (what, remedy string){
	"amount": checkAmount, "count": checkCount, "line": checkLine, "text": checkText,
	"oneof": func(value, words string) (string, string) { return oneOf(value, words), "" },
	"argument": func(value, _ string) (string, string) {
		return unless(argument.Valid(value), value, "a name that the CLI takes", "write it like opus or high")
	},
	"branch": func(value, _ string) (string, string) { // no other ref: the head of a pull request may be of a fork
		return unless(refname.Branch(value), value, "the name of a branch",
			"write it without refs/heads/, like main")
	},
	"id": func(value, kind string) (string, string) {
		form := idForms[kind]
		return unless(form.MatchString(value), value, form.what, form.remedy)
	},
	"path": func(value, _ string) (string, string) {
		return unless(filepath.IsAbs(value), value, "an absolute path", "write it from / on")
	},
	"pattern": func(value, _ string) (string, string) {
		return unless(patterns.Check(value), value, "a pattern", "write a name, or * for any part of it")
	},
}

// unless returns that a value is not what it should be, unless it is right.
func unless(right bool, value, what, remedy string) (string, string) {
	if right {
		return "", ""
	}
	return fmt.Sprintf("is %q, which is not %s", value, what), remedy
}

// oneOf returns what is wrong with a value that is none of some words; empty: nothing.
func oneOf(value, words string) string {
	list := strings.Fields(words)
	if slices.Contains(list, value) {
		return ""
	}
	last := len(list) - 1
	return fmt.Sprintf("must be %s or %s, not %q", strings.Join(list[:last], ", "), list[last], value)
}

// checkAmount accepts US dollars up to the bound.
func checkAmount(value, most string) (what, remedy string) {
	usd, err := strconv.ParseFloat(value, 64)
	limit, _ := strconv.ParseFloat(most, 64)
	if err == nil && usd >= 0 && usd <= limit {
		return "", ""
	}
	return "is not an amount", "write US dollars, like 2 or 0.5, and at most " + most
}

// checkCount accepts numbers from 0 to the bound.
func checkCount(value, most string) (what, remedy string) {
	n, err := strconv.ParseFloat(value, 64)
	limit, _ := strconv.ParseFloat(most, 64)
	if err == nil && n >= 0 && n <= limit {
		return "", ""
	}
	return "must be from 0 to " + most, ""
}

// checkLine accepts one line of some characters.
func checkLine(value, most string) (what, remedy string) {
	limit, _ := strconv.Atoi(most)
	if value = strings.TrimSpace(value); strings.ContainsAny(value, "\r\n") || utf8.RuneCountInString(value) > limit {
		return "must be one line of at most " + most + " characters", ""
	}
	return "", ""
}

// maxInstructions bounds each text for agents, in bytes: each run gets up to seven of them.
const maxInstructions = 20 << 10

// checkText accepts a text for agents.
func checkText(value, _ string) (what, remedy string) {
	if len(value) > maxInstructions || strings.ContainsRune(value, 0) {
		return fmt.Sprintf("has a NUL byte or more than %d KiB", maxInstructions>>10),
			"shorten it, or make the rest a skill under plugins"
	}
	return "", ""
}

// idForm describes the IDs or names of a kind.
type idForm struct {
	*regexp.Regexp
	what, remedy string
}

const (
	ofChannel     = "the id of a channel"
	remedyChannel = "write the id that the channel's details show, like C0123ABCD"
)

var idForms = map[string]idForm{
	"channel": {channelID, ofChannel, remedyChannel},
	"results": {regexp.MustCompile(`^[CG][A-Z0-9]+$`), ofChannel, remedyChannel}, // not a direct message
	"user": {
		regexp.MustCompile(`^[UW][A-Z0-9]+$`), "the id of a user",
		"write the member id that the profile shows, like U0123ABCD",
	},
	"team": {
		regexp.MustCompile(`^[TE][A-Z0-9]+$`), "the id of a workspace",
		"write the id in the workspace's address in a browser, like T0123ABCD",
	},
	"bot": {
		regexp.MustCompile(`^B[A-Z0-9]+$`), "the id of a bot", "write the bot_id of its messages, like B0123ABCD",
	},
	"login": {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(\[bot\])?$`), "a login", "write it without @"},
	// No person's account can have such a name.
	"botlogin": {
		regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*\[bot\]$`), "the login of a bot", `write it like "renovate[bot]"`,
	},
	"pool":       {pool, "the name of a pool", poolForm},
	"repository": {fullName, "the name of a repository", "write it as owner/name"},
}

var channelID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)

package github

import (
	"strings"

	"github.com/errand-fleet/errand/internal/spelling"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// said is what a remark says to errand.
type said struct {
	words.Words
	command         // that it begins with; zero if it begins with none
	rest     string // the text without the command
	mistaken bool   // it begins with a command that does not exist, or that takes no words and has some
	mistake  string // what to tell its author then; may be empty
}

// heard is a remark with what it says.
type heard struct {
	thread.Remark
	said said
}

// asks reports whether it mentions errand or is a command.
func (s said) asks() bool { return s.Ours > 0 || s.word != "" }

// requests reports whether it requests work where h is.
func (s said) requests(h remarkEvent) bool {
	return !s.mistaken && s.asks() && (s.word == "" || s.work != nil && !s.unavailableFor(h))
}

// readRemark reads the text of a remark. me is errand's login.
func readRemark(body, me string) said {
	s := said{Words: words.Markdown(body, me)}
	s.rest = s.Text
	word, behind, below := s.First()
	second, after := words.CutWord(behind)
	c := findCommand(word + " " + second)
	if c.word != "" {
		behind = after
	} else {
		c = findCommand(word)
	}
	switch {
	case c.word == "":
		s.mistake, s.mistaken = mistakeIn(word, s.Ours > 0)
	case behind == "" || c.takesWords():
		s.command, s.rest = c, strings.TrimSpace(behind+"\n"+below)
	default:
		if s.mistaken = true; s.Ours > 0 {
			s.mistake = standsAlone(c.word)
		}
	}
	return s
}

// mistakeIn reports whether the first word of a remark looks like a command and is none, and returns the reply. Other
// bots have commands, too. So without a mention only what is almost a command of errand is a mistake.
func mistakeIn(word string, mentioned bool) (reply string, mistaken bool) {
	name, slashed := strings.CutPrefix(word, "/")
	if !slashed {
		return "", false
	}
	for _, c := range commands() {
		if isTypo(word, c.word) {
			return "Unknown command. Did you mean `" + c.word + "`? Comment `/help` for the list.", true
		}
	}
	isName := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") == "" && strings.Trim(name, "-") != ""
	return unknownCommand, mentioned && isName
}

// isTypo reports whether word is a command in other capitals, or with one mistake behind its first letter.
func isTypo(word, command string) bool {
	lower, first := strings.ToLower(word), command[:len("/x")]
	return word != command && strings.HasPrefix(lower, first) && spelling.Distance(lower, command) <= 1
}

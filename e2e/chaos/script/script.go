// Package script is the protocol between the chaos harness and its scripted CLI: the orders in a prompt, and the lines
// between a process of a run and the witness. Only the prompt's text passes through errand.
package script

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Orders are the instructions in a message to the scripted CLI. They follow the message's token, which identifies the
// message everywhere.
type Orders struct {
	Token    string
	Work     time.Duration // how long the turn takes
	Crash    bool          // dies of a signal in the middle of the turn, the first time it sees the token
	Tool     bool          // leaves a process in a new session behind, which ignores TERM
	Stubborn bool          // ignores TERM itself
	Big      bool          // writes a line of 2 MiB
	Ask      bool          // asks the host for permission to use a tool
}

// flags are the orders that are a single word.
func (o *Orders) flags() map[string]*bool {
	return map[string]*bool{"crash": &o.Crash, "tool": &o.Tool, "stubborn": &o.Stubborn, "big": &o.Big, "ask": &o.Ask}
}

// names is the order in which they are written.
var names = []string{"crash", "tool", "stubborn", "big", "ask"}

func (o Orders) String() string {
	words := []string{o.Token, "work=" + o.Work.String()}
	flags := o.flags()
	for _, name := range names {
		if *flags[name] {
			words = append(words, name)
		}
	}
	return strings.Join(words, " ")
}

// Token is the n-th message's token, always of the same length, so that none is the beginning of another.
func Token(n int) string { return fmt.Sprintf("tok%05d", n) }

var (
	ordersForm = regexp.MustCompile(`tok[0-9]{5} work=\S+(?: (?:crash|tool|stubborn|big|ask)\b)*`)
	tokenForm  = regexp.MustCompile(`tok[0-9]{5}`)
)

// Parse finds all orders in a text.
func Parse(text string) []Orders {
	var all []Orders
	for _, found := range ordersForm.FindAllString(text, -1) {
		words := strings.Fields(found)
		o := Orders{Token: words[0]}
		o.Work, _ = time.ParseDuration(strings.TrimPrefix(words[1], "work="))
		flags := o.flags()
		for _, w := range words[2:] {
			*flags[w] = true
		}
		all = append(all, o)
	}
	return all
}

// Tokens finds all tokens in a text, in order, repetitions included.
func Tokens(text string) []string { return tokenForm.FindAllString(text, -1) }

// answerMark begins every answer of the scripted CLI. errand's own messages do not contain it.
const answerMark = "ANSWER"

// Answer is the result of a turn for those tokens.
func Answer(tokens []string) string { return answerMark + " " + strings.Join(tokens, " ") + " ." }

// Answers finds the tokens that a text answers. ok is false if the text contains no answer but the reason for its
// absence.
func Answers(text string) (tokens []string, ok bool) {
	for part := range strings.SplitSeq(text, answerMark) {
		if !ok { // the text before the first one
			ok = len(part) < len(text)
			continue
		}
		answer, _, _ := strings.Cut(part, " .")
		tokens = append(tokens, Tokens(answer)...)
	}
	return tokens, ok
}
